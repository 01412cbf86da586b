// Whoever asks mpiexec gets the whole answer, however long it is, and mpiexec waits for nobody.
#include "inquiries.h"

#include <cstddef>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "say.h"

namespace headway::launcher {
namespace {

class Asking : public testing::Test {
 protected:
  void SetUp() override {
    inquiries_.begin();
    ASSERT_GE(inquiries_.fd(), 0);
    socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un name = {};
    name.sun_family = AF_UNIX;
    const std::string text = format("headway-mpiexec-%d", getpid());
    memcpy(name.sun_path + 1, text.data(), text.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
    ASSERT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&name), length), 0);
  }
  void TearDown() override {
    if (socket_ >= 0) close(socket_);
  }

  // What came: the text in the memory that was handed over.
  std::string answer() const {
    char byte = 1;
    iovec data = {&byte, 1};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    if (recvmsg(socket_, &message, MSG_CMSG_CLOEXEC) != 1) return "nothing";
    const cmsghdr* const part = CMSG_FIRSTHDR(&message);
    if (part == nullptr || part->cmsg_type != SCM_RIGHTS) return "no descriptor";
    int fd = -1;
    memcpy(&fd, CMSG_DATA(part), sizeof fd);
    struct stat about = {};
    fstat(fd, &about);
    std::string text(size_t(about.st_size), 0);
    if (pread(fd, text.data(), text.size(), 0) != about.st_size) text = "cut";
    close(fd);
    return text;
  }

  Inquiries inquiries_;
  int socket_ = -1;
};

TEST_F(Asking, AnAnswerOfMegabytesIsWhole) {
  std::string text;
  while (text.size() < 5 << 20) text += format("%zu,", text.size());
  inquiries_.answer([&] { return text; });
  EXPECT_EQ(answer(), text);
}

TEST_F(Asking, ALimitOnFilesKillsNobody) {
  rlimit was = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &was), 0);
  const rlimit small = {100, was.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  inquiries_.answer([] { return std::string(5000, 'x'); });
  setrlimit(RLIMIT_FSIZE, &was);
  std::string text(6000, 0);
  EXPECT_EQ(recv(socket_, text.data(), text.size(), 0), 5000) << "the text itself";
}

TEST_F(Asking, WhoHasLeftHoldsNobodyUp) {
  close(socket_);
  bool asked = false;
  inquiries_.answer([&] {
    asked = true;
    return std::string(5 << 20, 'x');
  });
  EXPECT_TRUE(asked);
  socket_ = -1;
}

}  // namespace
}  // namespace headway::launcher
