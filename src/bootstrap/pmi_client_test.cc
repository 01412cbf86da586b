// The client against a fake launcher on the other end of a socket pair: the verbs, limits, and a
// launcher that lies, stutters or dies.
#include "bootstrap/pmi_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fcntl.h>
#include <functional>
#include <map>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace headway::bootstrap {
namespace {

// Answers each line with what a function returns; "" closes the connection, "-" says nothing.
class FakeLauncher {
 public:
  using Script = std::function<std::string(const std::string& line)>;

  explicit FakeLauncher(Script script, size_t piece = 4096)
      : script_(std::move(script)), piece_(piece) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) abort();
    mine_ = ends[0];
    client_end = ends[1];
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeLauncher() {
    shutdown(mine_, SHUT_RDWR);
    thread_.join();
    close(mine_);
  }

  int client_end;
  std::string heard;  // to be read after stop()

  void stop() { shutdown(mine_, SHUT_RDWR); }

 private:
  void serve() {
    std::string text;
    char buffer[4096];
    ssize_t got;
    while ((got = read(mine_, buffer, sizeof buffer)) > 0) {
      text.append(buffer, static_cast<size_t>(got));
      size_t end;
      while ((end = text.find('\n')) != std::string::npos) {
        const std::string line = text.substr(0, end);
        text.erase(0, end + 1);
        heard += line + "\n";
        const std::string reply = script_(line);
        if (reply == "-") continue;
        if (reply.empty()) {
          shutdown(mine_, SHUT_RDWR);
          return;
        }
        for (size_t at = 0; at < reply.size(); at += piece_) {
          const std::string part = reply.substr(at, piece_);
          if (send(mine_, part.data(), part.size(), MSG_NOSIGNAL) < 0) return;
        }
      }
    }
  }

  Script script_;
  size_t piece_;
  int mine_;
  std::thread thread_;
};

std::string value_in(const std::string& line, const std::string& key) {
  pmi::Line parsed;
  std::string_view value;
  if (!parsed.parse(line) || !parsed.get(key, value)) return "";
  return std::string(value);
}

// A launcher that behaves.
struct Good {
  std::map<std::string, std::string> texts;
  std::string init = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";

  std::string operator()(const std::string& line) {
    const std::string command = value_in(line, "cmd");
    if (command == "init") return init;
    if (command == "get_maxes") {
      return "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024\n";
    }
    if (command == "get_my_kvsname") return "cmd=my_kvsname rc=0 kvsname=job_7\n";
    if (command == "get_appnum") return "cmd=appnum rc=0 appnum=2\n";
    if (command == "get_universe_size") return "cmd=universe_size rc=0 size=-1\n";
    if (command == "put") {
      texts[value_in(line, "key")] = value_in(line, "value");
      return "cmd=put_result rc=0 msg=success\n";
    }
    if (command == "get") {
      const auto found = texts.find(value_in(line, "key"));
      if (found == texts.end()) return "cmd=get_result rc=-1 msg=key_not_found value=unknown\n";
      return "cmd=get_result rc=0 msg=success value=" + found->second + "\n";
    }
    if (command == "barrier_in") return "cmd=barrier_out\n";
    if (command == "finalize") return "cmd=finalize_ack rc=0\n";
    return "-";
  }
};

struct Client {
  PmiClient client;
  PmiHello hello;
  ~Client() { client.disconnect(); }
  Outcome join(FakeLauncher& launcher) {
    hello.rank = 1;
    hello.size = 4;
    return client.join(launcher.client_end, hello);
  }
};

TEST(PmiClient, AllVerbs) {
  for (const size_t piece : {size_t(1), size_t(7), size_t(4096)}) {
    FakeLauncher launcher(Good(), piece);
    Client c;
    ASSERT_EQ(c.join(launcher), Outcome::ok);
    EXPECT_EQ(c.hello.appnum, 2);
    EXPECT_EQ(c.hello.universe_size, 4) << "unknown means the job's size";
    EXPECT_STREQ(c.client.kvs_name(), "job_7");
    EXPECT_TRUE(fcntl(launcher.client_end, F_GETFD) & FD_CLOEXEC);
    const std::string longest(value_max - 1, 'v');
    EXPECT_EQ(c.client.put("a", "x=y=z"), Outcome::ok);
    EXPECT_EQ(c.client.put("b", longest.c_str()), Outcome::ok);
    EXPECT_EQ(c.client.barrier(), Outcome::ok);
    char value[value_max];
    EXPECT_EQ(c.client.get("a", value, sizeof value), Outcome::ok);
    EXPECT_STREQ(value, "x=y=z");
    EXPECT_EQ(c.client.get("b", value, sizeof value), Outcome::ok);
    EXPECT_EQ(value, longest);
    EXPECT_EQ(c.client.get("c", value, sizeof value), Outcome::not_found);
    EXPECT_EQ(c.client.get("a", value, 5), Outcome::too_long);
    EXPECT_TRUE(c.client.connected()) << "none of these breaks the connection";
    c.client.finalize();
    EXPECT_FALSE(c.client.connected());
    EXPECT_EQ(c.client.barrier(), Outcome::launcher_lost);
  }
}

TEST(PmiClient, RefusesWhatPmiCannotCarry) {
  FakeLauncher launcher((Good()));
  Client c;
  ASSERT_EQ(c.join(launcher), Outcome::ok);
  const std::string key(key_max, 'k');
  const std::string value(value_max, 'v');
  EXPECT_EQ(c.client.put(key.c_str(), "v"), Outcome::too_long);
  EXPECT_EQ(c.client.put("k", value.c_str()), Outcome::too_long);
  EXPECT_EQ(c.client.put("k", "two words"), Outcome::too_long);
  EXPECT_EQ(c.client.put("k", "line\ncmd=abort"), Outcome::too_long);
  char out[8];
  EXPECT_EQ(c.client.get(key.c_str(), out, sizeof out), Outcome::too_long);
  EXPECT_EQ(c.client.barrier(), Outcome::ok) << "nothing of it was sent";
}

TEST(PmiClient, SmallerLimitsOfTheLauncherHold) {
  FakeLauncher launcher([good = Good()](const std::string& line) mutable {
    if (value_in(line, "cmd") != "get_maxes") return good(line);
    return std::string("cmd=maxes rc=0 kvsname_max=256 keylen_max=8 vallen_max=16\n");
  });
  Client c;
  ASSERT_EQ(c.join(launcher), Outcome::ok);
  EXPECT_EQ(c.client.put("1234567", "123456789012345"), Outcome::ok);
  EXPECT_EQ(c.client.put("12345678", "v"), Outcome::too_long);
  EXPECT_EQ(c.client.put("k", "1234567890123456"), Outcome::too_long);
}

TEST(PmiClient, OnlyOurLauncherHearsOurCommands) {
  for (const bool ours : {false, true}) {
    std::string heard;
    {
      Good good;
      if (ours) good.init = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0 headway=1\n";
      std::atomic<bool> end = false;
      FakeLauncher launcher([good, &heard, &end](const std::string& line) mutable {
        heard += line + "\n";
        if (value_in(line, "cmd") == "finalize") end = true;
        return good(line);
      });
      Client c;
      ASSERT_EQ(c.join(launcher), Outcome::ok);
      c.client.abort(3, "two words\nand a line");
      c.client.leave();
      EXPECT_EQ(end, !ours) << "others take this for good";
      c.client.come_back();
      c.client.finalize();
      EXPECT_TRUE(end);
    }
    EXPECT_EQ(heard.find("headway_leave") != std::string::npos, ours);
    EXPECT_EQ(heard.find("message=two words and a line\n") != std::string::npos, ours);
    EXPECT_NE(heard.find("cmd=abort exitcode=3"), std::string::npos);
  }
}

// What a launcher may answer to one of the first questions instead of the truth.
TEST(PmiClient, LiesAreNoticed) {
  const std::string huge(10'000, 'x');
  const std::map<std::string, Outcome> lies = {{"hello\n", Outcome::bad_reply},
                                               {"\n", Outcome::bad_reply},
                                               {"cmd=\n", Outcome::bad_reply},
                                               {std::string("cmd=a\0b\n", 8), Outcome::bad_reply},
                                               {"\xff\xfe\x01\n", Outcome::bad_reply},
                                               {huge, Outcome::bad_reply},
                                               {"cmd=barrier_out rc=0\n", Outcome::bad_reply},
                                               {"", Outcome::launcher_lost}};
  for (const char* question : {"init", "get_maxes", "get_my_kvsname", "get_appnum"}) {
    for (const auto& [lie, outcome] : lies) {
      FakeLauncher launcher([&, good = Good()](const std::string& line) mutable {
        return value_in(line, "cmd") == question ? lie : good(line);
      });
      Client c;
      EXPECT_EQ(c.join(launcher), outcome) << question << " answered by " << lie.substr(0, 40);
      EXPECT_FALSE(c.client.connected());
    }
  }
}

TEST(PmiClient, RefusalsAreNoLies) {
  FakeLauncher init([](const std::string&) {
    return std::string("cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=-1\n");
  });
  Client c;
  EXPECT_EQ(c.join(init), Outcome::refused);
  FakeLauncher code([good = Good()](const std::string& line) mutable {
    return value_in(line, "cmd") == "put" ? std::string("cmd=put_result rc=many\n") : good(line);
  });
  Client d;
  ASSERT_EQ(d.join(code), Outcome::ok);
  EXPECT_EQ(d.client.put("k", "v"), Outcome::bad_reply);
  EXPECT_EQ(d.client.put("k", "v"), Outcome::launcher_lost) << "closed after a bad reply";
}

TEST(PmiClient, TheLauncherDiesInABarrier) {
  FakeLauncher launcher([good = Good()](const std::string& line) mutable {
    return value_in(line, "cmd") == "barrier_in" ? std::string() : good(line);
  });
  Client c;
  ASSERT_EQ(c.join(launcher), Outcome::ok);
  EXPECT_EQ(c.client.barrier(), Outcome::launcher_lost);
  EXPECT_FALSE(c.client.connected());
}

TEST(PmiClient, ANonBlockingDescriptorWorks) {
  FakeLauncher launcher(Good(), 1);
  fcntl(launcher.client_end, F_SETFL, O_NONBLOCK);
  Client c;
  ASSERT_EQ(c.join(launcher), Outcome::ok);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(c.client.barrier(), Outcome::ok);
}

TEST(PmiClient, NothingListensAtThePort) {
  PmiHello hello;
  PmiClient client;
  for (const char* place : {"127.0.0.1:1", "no-colon", ":", "127.0.0.1:", "", "[::1]:1"}) {
    EXPECT_EQ(client.join_at(place, 0, hello), Outcome::launcher_lost) << place;
    EXPECT_FALSE(client.connected());
  }
}

}  // namespace
}  // namespace headway::bootstrap
