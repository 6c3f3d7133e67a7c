// Listens, reads requests, and lets an application answer them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "serve/http/application.h"
#include "serve/http/http_limits.h"
#include "serve/http/room.h"

namespace sluice::serve::http {

struct HttpCounters {
  std::atomic<std::int64_t> connections = 0;
  std::atomic<std::uint64_t> bytes_sent = 0;
};

// Thread-safe.
class HttpServer {
 public:
  // `server_name`: for the header Server, "sluice/0.3". The application must outlive this.
  HttpServer(Application& application, const HttpLimits& limits, std::string server_name);
  ~HttpServer();  // as stop()
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Takes a listening socket (listening_socket.h), and closes it in the end.
  void start(int listening_socket, unsigned threads);
  // Nobody can connect any more; connections go on.
  void stop_accepting();
  // Ends all connections, and returns when no handler runs any more.
  void stop();
  // Runs on one of its threads, thread-safe; dropped when it has stopped.
  void post(std::function<void()> work);
  const HttpCounters& counters() const;
  std::shared_ptr<Room> answers_room() const;
  // Before start(): frees memory for answers; called by several threads. False: there is none to be freed.
  void set_make_room(std::function<bool()> make_room);

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace sluice::serve::http
