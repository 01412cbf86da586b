// Which addresses a host tells, and in which order a peer's are tried.
#include "transports/tcp/detail/address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace headway::tcp {
namespace {

Address make(const char* text, unsigned prefix = 24, Reach reach = Reach::global) {
  Address out;
  out.family = strchr(text, ':') ? AF_INET6 : AF_INET;
  out.prefix = uint8_t(prefix);
  out.reach = reach;
  EXPECT_EQ(inet_pton(out.family, text, out.bytes), 1) << text;
  return out;
}

std::string text_of(const Address& address) {
  Line line;
  add_address(line, address);
  return line.text;
}

TEST(AddressText, AgreesWithTheSystem) {
  for (const char* text : {"0.0.0.0", "255.255.255.255", "10.1.2.3", "::", "::1", "1::", "fe80::1",
                           "2001:db8::1:0:0:1", "2001:db8:0:1:1:1:1:1", "1:2:3:4:5:6:7:8",
                           "1:0:0:4::8", "0:1:2:3:4:5:6:7", "1:2:3:4:5:6:7:0", "::2:3:4:5:6:7:8"}) {
    const Address address = make(text);
    char system[INET6_ADDRSTRLEN];
    inet_ntop(address.family, address.bytes, system, sizeof system);
    EXPECT_EQ(text_of(address), system);
  }
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i) {
    Address address;
    address.family = AF_INET6;
    for (unsigned char& byte : address.bytes) {
      byte = random() % 3 ? (unsigned char)0 : (unsigned char)random();
    }
    address.bytes[0] = 0x20;  // the system writes ::a.b.c.d differently
    char system[INET6_ADDRSTRLEN];
    inet_ntop(AF_INET6, address.bytes, system, sizeof system);
    EXPECT_EQ(text_of(address), system);
  }
}

TEST(Subnets, ByPrefix) {
  EXPECT_TRUE(same_subnet(make("10.0.0.1"), make("10.0.0.200"), 24));
  EXPECT_FALSE(same_subnet(make("10.0.0.1"), make("10.0.1.1"), 24));
  EXPECT_TRUE(same_subnet(make("10.0.0.1"), make("10.0.1.1"), 23));
  EXPECT_FALSE(same_subnet(make("10.0.0.1"), make("10.0.2.1"), 23));
  EXPECT_TRUE(same_subnet(make("10.0.0.1"), make("99.0.0.1"), 0));
  EXPECT_FALSE(same_subnet(make("10.0.0.1"), make("::1"), 0));
  EXPECT_TRUE(same_subnet(make("2001:db8::1"), make("2001:db8::2"), 64));
}

TEST(Cards, RoundTrip) {
  Card card;
  card.host = 0x0123456789abcdef;
  card.port = 65535;
  card.addresses[card.count++] = make("192.168.7.9", 22);
  card.addresses[card.count++] = make("2001:db8::9", 64);
  card.addresses[card.count++] = make("172.17.0.1", 16, Reach::bridge);
  card.addresses[card.count++] = make("fe80::1", 64, Reach::link_local);
  card.addresses[card.count++] = make("127.0.0.1", 8, Reach::loopback);
  char text[1024];
  size_t length = 0;
  ASSERT_TRUE(write_card(card, text, sizeof text, length));
  EXPECT_EQ(length, strlen(text));
  EXPECT_LT(length, 200u);
  Card back;
  ASSERT_TRUE(read_card(text, back)) << text;
  EXPECT_EQ(back.host, card.host);
  EXPECT_EQ(back.port, card.port);
  ASSERT_EQ(back.count, card.count);
  for (size_t i = 0; i < card.count; ++i) {
    EXPECT_TRUE(same_address(back.addresses[i], card.addresses[i]));
    EXPECT_EQ(back.addresses[i].prefix, card.addresses[i].prefix);
    EXPECT_EQ(back.addresses[i].reach, card.addresses[i].reach);
  }
  EXPECT_FALSE(write_card(card, text, length, length)) << "no room for the final NUL";
}

TEST(Order, LoopbackFirstOnOneHostAndNeverBetweenTwo) {
  Card peer;
  peer.host = 7;
  peer.port = 1;
  peer.addresses[peer.count++] = make("127.0.0.1", 8, Reach::loopback);
  peer.addresses[peer.count++] = make("192.0.2.1", 24);
  Candidate out[max_addresses];
  ASSERT_EQ(order_candidates(peer, 7, 0, out), 2u);
  EXPECT_EQ(text_of(out[0].address), "127.0.0.1");
  ASSERT_EQ(order_candidates(peer, 8, 0, out), 1u);
  EXPECT_EQ(text_of(out[0].address), "192.0.2.1");
  // Where nobody knows, it is tried: the secret tells whether the right rank listens there.
  ASSERT_EQ(order_candidates(peer, 0, 0, out), 2u);
}

TEST(Order, OwnAddressInAForeignCardIsADeadEnd) {
  Card peer;
  peer.host = 7;
  peer.port = 1;
  // 127.0.0.1 stands for docker0's 172.17.0.1, which every host with docker has.
  peer.addresses[peer.count++] = make("127.0.0.1", 8, Reach::bridge);
  Candidate out[max_addresses];
  EXPECT_EQ(order_candidates(peer, 8, 0, out), 0u);
  EXPECT_EQ(order_candidates(peer, 7, 0, out), 1u);
}

TEST(Order, BridgesAndLinkLocalComeLast) {
  Card peer;
  peer.host = 7;
  peer.port = 1;
  peer.addresses[peer.count++] = make("127.0.0.4", 8, Reach::link_local);
  peer.addresses[peer.count++] = make("127.0.0.3", 8, Reach::bridge);
  peer.addresses[peer.count++] = make("127.0.0.2", 8, Reach::global);
  Candidate out[max_addresses];
  ASSERT_EQ(order_candidates(peer, 8, 0, out), 3u);
  EXPECT_EQ(text_of(out[0].address), "127.0.0.2");
  EXPECT_EQ(text_of(out[1].address), "127.0.0.3");
  EXPECT_EQ(text_of(out[2].address), "127.0.0.4");
  EXPECT_EQ(text_of(out[0].local), "127.0.0.1");
}

TEST(Own, LoopbackIsAlwaysThereAndLast) {
  Card card;
  uint32_t scope;
  Line why;
  ASSERT_TRUE(list_own("", card, scope, why));
  bool seen = false;
  for (size_t i = 0; i < card.count; ++i) {
    const bool loopback = card.addresses[i].reach == Reach::loopback;
    EXPECT_TRUE(loopback || !seen) << "something behind loopback";
    seen |= loopback;
  }
  EXPECT_TRUE(seen) << why.text;
  EXPECT_NE(host_identity(), 0u);
  EXPECT_EQ(host_identity(), host_identity());
}

}  // namespace
}  // namespace headway::tcp
