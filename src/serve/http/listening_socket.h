// Sockets that a server listens on: an address of the network, a path, or one that systemd has opened.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::serve::http {

struct Listening {
  int descriptor = -1;    // the one who takes it closes it
  std::string address;    // "http://127.0.0.1:8080", "unix:/run/sluice.sock"
  bool loopback = false;  // nobody beyond this machine can connect
  bool unix_path = false;
  std::uint16_t port = 0;  // the real one, where 0 was asked for
};

// Error(kUsage), (kIo) naming the setting: a name that is no address, a port that is taken.
Listening listen_on(const std::string& host, std::uint16_t port);
// With mode 0600. A socket that nobody listens on any more is removed first; any other file stays.
Listening listen_on_path(const std::string& path);
// The socket that LISTEN_FDS names, if it is for this process; the variables are removed.
std::optional<Listening> inherited_socket();

bool is_loopback_host(std::string_view host);  // as Setting::kHost has it

// Tells systemd, by NOTIFY_SOCKET, "READY=1" and the like. Nothing without the variable.
void notify_service_manager(std::string_view state);

}  // namespace sluice::serve::http
