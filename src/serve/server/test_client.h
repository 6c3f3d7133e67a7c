// For tests: a client of HTTP that sends any bytes, and reads what comes.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace sluice::serve::testing {

struct TestResponse {
  int status = 0;  // 0: none came
  std::string head, body;
  std::string header(std::string_view name) const {  // "name: " in the case in which it was sent
    const std::string start = "\r\n" + std::string(name) + ": ";
    const std::size_t at = head.find(start);
    if (at == std::string::npos) return {};
    const std::size_t begin = at + start.size();
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

class TestClient {
 public:
  explicit TestClient(std::uint16_t port, int receive_buffer = 0) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0)
      setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~TestClient() { close(); }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  bool connected() const { return connected_; }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  void reset() {  // closes so that the other end sees a reset
    const linger now{1, 0};
    setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close();
  }
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // What arrives within this time; empty: nothing did, or the end came.
  std::string receive(std::chrono::milliseconds most = std::chrono::seconds(10)) {
    pollfd ready{socket_, POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(most.count())) <= 0) return {};
    char bytes[4096];
    const ssize_t got = recv(socket_, bytes, sizeof(bytes), 0);
    ended_ |= got <= 0;
    return got <= 0 ? std::string() : std::string(bytes, static_cast<std::size_t>(got));
  }
  // Until the text stands in what has come, which is given; or all until the end.
  std::string receive_until(std::string_view text) {
    std::string all = std::exchange(rest_, {});
    while (all.find(text) == std::string::npos) {
      const std::string piece = receive();
      if (piece.empty()) break;
      all += piece;
    }
    return all;
  }
  std::string receive_all() { return receive_until(std::string(1, '\0') + "never"); }
  bool ended() const { return ended_; }

  // One answer, whose body's end the head tells.
  TestResponse response(bool has_body = true) {
    TestResponse response;
    std::string all = receive_until("\r\n\r\n");
    const std::size_t end = all.find("\r\n\r\n");
    if (end == std::string::npos) return response;
    response.head = all.substr(0, end + 2);
    rest_ = all.substr(end + 4);
    if (response.head.size() > 12) response.status = std::atoi(response.head.c_str() + 9);
    if (!has_body) return response;
    if (!response.header("Content-Length").empty()) {
      response.body = exactly(std::stoul(response.header("Content-Length")));
    } else if (response.header("Transfer-Encoding") == "chunked") {
      response.body = chunks();
    } else if (response.status != 204 && response.status != 304) {
      response.body = receive_all();
    }
    return response;
  }

 private:
  std::string exactly(std::size_t bytes) {
    while (rest_.size() < bytes) {
      const std::string piece = receive();
      if (piece.empty()) break;
      rest_ += piece;
    }
    std::string taken = rest_.substr(0, bytes);
    rest_.erase(0, taken.size());
    return taken;
  }
  std::string line() {
    std::string all = receive_until("\r\n");
    const std::size_t end = all.find("\r\n");
    if (end == std::string::npos) return {};
    rest_ = all.substr(end + 2);
    return all.substr(0, end);
  }
  std::string chunks() {
    std::string body;
    while (true) {
      const std::size_t size = std::strtoul(line().c_str(), nullptr, 16);
      body += exactly(size);
      exactly(2);
      if (size == 0) return body;
    }
  }

  int socket_;
  bool connected_ = false, ended_ = false;
  std::string rest_;
};

}  // namespace sluice::serve::testing
