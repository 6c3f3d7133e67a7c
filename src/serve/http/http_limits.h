// How much and how long the HTTP server takes from a client.
#pragma once

#include <chrono>
#include <cstddef>

namespace sluice::serve::http {

struct HttpLimits {
  std::size_t body_bytes = std::size_t{32} << 20;
  std::size_t head_bytes = 16 << 10;  // headers together with the request line
  std::size_t line_bytes = 8 << 10;   // the request line
  std::size_t connections = 256;
  std::size_t requests = 1000;                      // requests of one connection
  std::size_t unsent_bytes = std::size_t{1} << 20;  // bytes of a stream, before its reader counts as too slow
  std::size_t room_bytes = std::size_t{64} << 20;   // for connections and bodies together
  std::chrono::milliseconds head{10'000};           // until the headers are there
  std::chrono::milliseconds body{30'000};           // from one part of a body to the next
  std::chrono::milliseconds idle{75'000};           // between requests
  std::chrono::milliseconds stall{60'000};          // without a byte that can be sent
  std::chrono::milliseconds linger{1'000};          // for what a refused client still sends
};

inline constexpr std::size_t kConnectionBytes = 16 << 10;  // what a connection is charged with

}  // namespace sluice::serve::http
