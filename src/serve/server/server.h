// The server: HTTP in front of a backend.
//
//   ServerOptions options;                       // address, keys, limits, log
//   serve::Server server(backend, options);      // binds the address: Error(kIo) if it is taken
//   server.start();                              // answers; /health with 503 while the model loads
//   ... load the model; the backend's state() says kReady ...
//   http::notify_service_manager("READY=1");
//   ... wait for SIGTERM ...
//   const bool clean = server.drain(seconds(30));  // 503 for new requests; false: some had to be ended
//   server.stop();                               // also what the destructor does
//
// The backend must outlive the server, and stop() must come before its engine ends, since answers that are
// being given are cancelled there.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "serve/backend.h"
#include "serve/server/server_options.h"

namespace sluice::serve {

// Thread-safe.
class Server {
 public:
  // Binds, so that a taken port fails before a long load. Error(kUsage): an address that others reach without
  // a key, a page directory that is none.
  Server(Backend& backend, ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void start();
  // Refuses what is new, waits so long for what runs, and ends the rest with an error. True: nothing was
  // left.
  bool drain(std::chrono::milliseconds most);
  void stop();
  const std::string& address() const;  // "http://127.0.0.1:8080", "unix:/run/sluice.sock"
  std::uint16_t port() const;          // 0 on a path

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::serve
