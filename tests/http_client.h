// A client of the program's server, as plain as can be: one connection a request.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

namespace sluice::program {

struct Reply {
  int status = 0;
  std::string head, body;  // the body without the marks of chunks
};

// A connection to a port of this machine.
class HttpConnection {
 public:
  explicit HttpConnection(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~HttpConnection() { ::close(socket_); }
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  void send(const std::string& text) {
    EXPECT_EQ(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  // At least one byte; empty at the end.
  std::string receive() {
    char bytes[4096];
    const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
    return std::string(bytes, count > 0 ? static_cast<std::size_t>(count) : 0);
  }

 private:
  const int socket_;
};

inline std::string request_text(const std::string& method, const std::string& path, const std::string& body,
                                const std::string& headers = "") {
  return method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers +
         (body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n") + "\r\n" + body;
}

inline std::string without_chunks(std::string text) {
  std::string body;
  for (;;) {
    const std::size_t end = text.find("\r\n");
    if (end == text.npos) return body;
    const std::size_t size = std::strtoul(text.c_str(), nullptr, 16);
    if (size == 0) return body;
    body += text.substr(end + 2, size);
    text.erase(0, end + 2 + size + 2);
  }
}

inline Reply reply_of(const std::string& all) {
  Reply reply;
  const std::size_t end = all.find("\r\n\r\n");
  reply.head = all.substr(0, end);
  if (end != all.npos) reply.body = all.substr(end + 4);
  if (reply.head.size() > 12) reply.status = std::atoi(reply.head.c_str() + 9);
  if (reply.head.find("chunked") != reply.head.npos) reply.body = without_chunks(reply.body);
  return reply;
}

inline Reply ask(std::uint16_t port, const std::string& method, const std::string& path,
                 const std::string& body = "", const std::string& headers = "") {
  HttpConnection connection(port);
  connection.send(request_text(method, path, body, headers));
  std::string all;
  for (std::string part = connection.receive(); !part.empty(); part = connection.receive()) all += part;
  return reply_of(all);
}

}  // namespace sluice::program
