#include "communicators/detail/edges.h"

#include "communicators/detail/steps.h"
#include "communicators/detail/words.h"

namespace headway::communicators {
namespace {

using collectives::Blocks;
using objects::Comm;
using objects::Edges;

const datatypes::Type* word_type() { return &datatypes::predefined(datatypes::BasicType::int64_t); }
const datatypes::Type* int_type() { return &datatypes::predefined(datatypes::BasicType::int32_t); }

// The first place of each block behind the other, and the end of all. False without memory.
bool add_up(const base::Vec<int64_t>& counts, base::Vec<int64_t>& places, int64_t& end) {
  end = 0;
  if (!places.reserve(counts.size())) return false;
  for (const int64_t count : counts) {
    (void)places.push(end);
    end += count;
  }
  return true;
}

Blocks blocks_of(base::Vec<int>& numbers, const base::Vec<int64_t>& counts,
                 const base::Vec<int64_t>& places) {
  return Blocks::uneven(numbers.data(), datatypes::Integers(counts.data()),
                        datatypes::Integers(places.data()), int_type());
}

// Calls visit(source, target, weight) for each edge, in the order in which they are named.
template <class Visit>
void each_edge(const NamedEdges& named, Visit&& visit) {
  int64_t at = 0;
  for (int i = 0; i < named.count; ++i) {
    for (int left = named.degrees[i]; left > 0; --left, ++at) {
      visit(named.sources[i], named.targets[at], named.weights ? named.weights[at] : 1);
    }
  }
}

// Of an edge: source, target, weight. It goes to both ends, to one that is both but once.
constexpr int64_t edge_numbers = 3;

template <class Visit>
void each_end(int source, int target, Visit&& visit) {
  visit(source);
  if (target != source) visit(target);
}

// In the first exchange, to each rank: how many numbers come, what was said, a context.
constexpr size_t told_words = 3;
constexpr int64_t said_edges = 1, said_weights = 2, said_reorder = 4;

struct Exchange {
  base::Vec<int64_t> told, heard;          // told_words for each rank
  base::Vec<int64_t> counts, places;       // of what goes, in numbers
  base::Vec<int64_t> coming, come_places;  // of what comes
  base::Vec<int64_t> next;                 // where the next number goes, in `out`
  base::Vec<int> out, in;
};

// What is as long as there are ranks. False without memory.
bool make_room(size_t ranks, Exchange& exchange) {
  return exchange.told.resize(told_words * ranks) && exchange.heard.resize(told_words * ranks) &&
         exchange.counts.resize(ranks) && exchange.coming.resize(ranks) &&
         exchange.places.reserve(ranks) && exchange.come_places.reserve(ranks) &&
         exchange.next.reserve(ranks);
}

Outcome tell_counts(const Makers& makers, Comm* comm, const NamedEdges& named, bool reorder,
                    Exchange& exchange) {
  const size_t ranks = size_t(comm->own.size);
  const Outcome own = make_room(ranks, exchange) ? Outcome::ok : Outcome::no_memory;
  if (const Outcome all = agree_on(makers, comm, own); all != Outcome::ok) return all;
  bool any = false;
  each_edge(named, [&](int source, int target, int) {
    any = true;
    each_end(source, target, [&](int end) { exchange.counts[size_t(end)] += edge_numbers; });
  });
  const int64_t said =
      (any ? said_edges : 0) | (named.weighted ? said_weights : 0) | (reorder ? said_reorder : 0);
  const int64_t context = comm->own.self == 0 ? int64_t(makers.new_context()) : 0;
  for (size_t rank = 0; rank < ranks; ++rank) {
    int64_t* words = &exchange.told[told_words * rank];
    words[0] = exchange.counts[rank];
    words[1] = said;
    words[2] = context;
  }
  const Blocks told = Blocks::even(exchange.told.data(), told_words, word_type());
  const Blocks heard = Blocks::even(exchange.heard.data(), told_words, word_type());
  return run_whole(makers, collectives::alltoall(place_of(makers, comm), told, heard));
}

// From what was heard.
Votes count_votes(const Exchange& exchange, size_t ranks) {
  Votes votes;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const int64_t said = exchange.heard[told_words * rank + 1];
    const Votes one =
        Votes::of((said & said_edges) != 0, (said & said_weights) != 0, (said & said_reorder) != 0);
    votes.weighted += one.weighted;
    votes.unweighted += one.unweighted;
    votes.empty += one.empty;
    votes.reorder += one.reorder;
  }
  return votes;
}

Outcome send_edges(const Makers& makers, Comm* comm, const NamedEdges& named, Exchange& exchange) {
  const size_t ranks = size_t(comm->own.size);
  for (size_t rank = 0; rank < ranks; ++rank) {
    exchange.coming[rank] = exchange.heard[told_words * rank];
  }
  int64_t leaving = 0, coming = 0;
  const bool room = add_up(exchange.counts, exchange.places, leaving) &&
                    add_up(exchange.coming, exchange.come_places, coming) &&
                    exchange.out.resize(size_t(leaving)) && exchange.in.resize(size_t(coming));
  const Outcome own = room ? Outcome::ok : Outcome::no_memory;
  if (const Outcome all = agree_on(makers, comm, own); all != Outcome::ok) return all;
  for (const int64_t place : exchange.places) (void)exchange.next.push(place);
  each_edge(named, [&](int source, int target, int weight) {
    each_end(source, target, [&](int end) {
      int64_t& next = exchange.next[size_t(end)];
      int* numbers = &exchange.out[size_t(next)];
      numbers[0] = source;
      numbers[1] = target;
      numbers[2] = weight;
      next += edge_numbers;
    });
  });
  const Blocks out = blocks_of(exchange.out, exchange.counts, exchange.places);
  const Blocks in = blocks_of(exchange.in, exchange.coming, exchange.come_places);
  return run_whole(makers, collectives::alltoallv(place_of(makers, comm), out, in,
                                                  collectives::Kind::alltoallv));
}

bool add_edge(int other, int weight, base::Vec<int>& ranks, base::Vec<int>& weights, bool keep) {
  return ranks.push(other) && (!keep || weights.push(weight));
}

// This rank's, of those that have come. False without memory.
bool take_edges(const base::Vec<int>& come, int self, Edges& edges) {
  for (size_t at = 0; at < come.size(); at += size_t(edge_numbers)) {
    const int source = come[at], target = come[at + 1], weight = come[at + 2];
    if (source == self &&
        !add_edge(target, weight, edges.targets, edges.target_weights, edges.weighted)) {
      return false;
    }
    if (target == self &&
        !add_edge(source, weight, edges.sources, edges.source_weights, edges.weighted)) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool set_weighted(Edges& edges, bool weighted) {
  edges.weighted = weighted;
  if (!weighted) {
    edges.source_weights.clear();
    edges.target_weights.clear();
  }
  // Whoever has edges has said so himself; the weights of the others are as many as their edges:
  // none.
  return edges.source_weights.resize(weighted ? edges.sources.size() : 0) &&
         edges.target_weights.resize(weighted ? edges.targets.size() : 0);
}

Outcome hand_out_edges(const Makers& makers, Comm* comm, const NamedEdges& named, bool reorder,
                       const HandedOut& to) {
  Exchange exchange;
  const Outcome told = tell_counts(makers, comm, named, reorder, exchange);
  if (told != Outcome::ok) return told;
  const Votes votes = count_votes(exchange, size_t(comm->own.size));
  to.accord = votes.accord(comm->own.size);
  to.context = uint64_t(exchange.heard[2]);
  if (to.accord != Accord::alike) return Outcome::ok;
  const Outcome sent = send_edges(makers, comm, named, exchange);
  if (sent != Outcome::ok) return sent;
  to.edges.weighted = votes.are_weighted();
  if (!take_edges(exchange.in, comm->own.self, to.edges)) to.own = Outcome::no_memory;
  return Outcome::ok;
}

bool AllEdges::reserve(int ranks) {
  const size_t room = size_t(ranks);
  return degrees_.reserve(2 * room) && counts_.reserve(room) && places_.reserve(room);
}

// Where each rank's pairs lie. False without memory.
bool AllEdges::lay_out(int ranks, int64_t most) {
  int64_t end = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    (void)counts_.push(2 * (sources_of(rank) + targets_of(rank)));
  }
  if (!add_up(counts_, places_, end)) return false;
  if (end > 4 * most) {  // each edge is at both of its ends, with two numbers
    counts_.clear();
    return true;
  }
  return pairs_.resize(size_t(end));
}

Outcome AllEdges::gather(const Makers& makers, Comm* comm, const Edges& own, int64_t most) {
  const int64_t degrees[] = {int64_t(own.sources.size()), int64_t(own.targets.size())};
  const Outcome shared = share_numbers(makers, comm, degrees_, 2, degrees);
  if (shared != Outcome::ok) return shared;
  const Outcome laid = lay_out(comm->own.size, most) ? Outcome::ok : Outcome::no_memory;
  if (const Outcome all = agree_on(makers, comm, laid); all != Outcome::ok) return all;
  if (counts_.empty()) return Outcome::ok;
  size_t at = size_t(places_[size_t(comm->own.self)]);
  const auto put = [&](const base::Vec<int>& ranks, const base::Vec<int>& weights) {
    for (size_t i = 0; i < ranks.size(); ++i) {
      pairs_[at++] = ranks[i];
      pairs_[at++] = own.weighted ? weights[i] : 1;
    }
  };
  put(own.sources, own.source_weights);
  put(own.targets, own.target_weights);
  return run_whole(makers, collectives::allgatherv(place_of(makers, comm), {},
                                                   blocks_of(pairs_, counts_, places_)));
}

bool AllEdges::list_links(base::Vec<objects::Link>& links) const {
  for (size_t rank = 0; rank < counts_.size(); ++rank) {
    size_t at = size_t(places_[rank] + 2 * sources_of(int(rank)));
    for (int64_t i = 0; i < targets_of(int(rank)); ++i, at += 2) {
      if (!links.push({int(rank), pairs_[at], pairs_[at + 1]})) return false;
    }
  }
  return true;
}

bool AllEdges::take(int rank, Edges& edges) const {
  size_t at = size_t(places_[size_t(rank)]);
  const auto get = [&](int64_t count, base::Vec<int>& ranks, base::Vec<int>& weights) {
    ranks.clear();
    weights.clear();
    for (int64_t i = 0; i < count; ++i, at += 2) {
      if (!add_edge(pairs_[at], pairs_[at + 1], ranks, weights, edges.weighted)) return false;
    }
    return true;
  };
  return get(sources_of(rank), edges.sources, edges.source_weights) &&
         get(targets_of(rank), edges.targets, edges.target_weights);
}

}  // namespace headway::communicators
