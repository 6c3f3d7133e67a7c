#include "serve/http/listening_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/setting.h"
#include "serve/http/peer_name.h"

namespace sluice::serve::http {
namespace {

constexpr int kBacklog = 512;

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == 127;
  if (address.ss_family == AF_INET6) {
    const in6_addr& six = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    return std::memcmp(&six, &in6addr_loopback, sizeof(six)) == 0;
  }
  return address.ss_family == AF_UNIX;
}

Listening described(int descriptor) {
  Listening listening{descriptor, {}, false, false, 0};
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length);
  listening.loopback = is_loopback(address);
  listening.unix_path = address.ss_family == AF_UNIX;
  if (listening.unix_path) {
    listening.address = std::string("unix:") + reinterpret_cast<const sockaddr_un&>(address).sun_path;
  } else {
    listening.address = "http://" + peer_name(address);
    listening.port =
        ntohs(address.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(address).sin_port
                                           : reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  return listening;
}

std::unique_ptr<addrinfo, void (*)(addrinfo*)> resolved(const std::string& host, std::uint16_t port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  const int status = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (status != 0)
    throw Error(ErrorKind::kUsage, "no address of this machine has this name")
        .in(Setting::kHost)
        .found(host + " (" + gai_strerror(status) + ")");
  return {found, freeaddrinfo};
}

// Whether the path is a socket whose server is gone.
bool is_left_over(const sockaddr_un& address) {
  struct stat status {};
  if (lstat(address.sun_path, &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool refused = connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 &&
                       errno == ECONNREFUSED;
  ::close(probe);
  return refused;
}

}  // namespace

Listening listen_on(const std::string& host, std::uint16_t port) {
  const auto addresses = resolved(host, port);
  int error = 0;
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    const int descriptor = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) {
      error = errno;
      continue;
    }
    const int on = 1;
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(descriptor, one->ai_addr, one->ai_addrlen) == 0 && listen(descriptor, kBacklog) == 0)
      return described(descriptor);
    error = errno;
    ::close(descriptor);
  }
  throw Error(ErrorKind::kIo, "the server cannot listen there")
      .in(host + ":" + std::to_string(port))
      .found(std::strerror(error))
      .fix("give another address by " + Setting::kHost + " or " + Setting::kPort);
}

Listening listen_on_path(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path))
    throw Error(ErrorKind::kUsage, "the path of a socket has a wrong length")
        .in(Setting::kUnix)
        .expected("1 to " + std::to_string(sizeof(address.sun_path) - 1) + " bytes")
        .found(std::to_string(path.size()));
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (is_left_over(address)) unlink(address.sun_path);
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) throw io_error("open a socket for", path, errno);
  const mode_t mask = umask(0177);  // the socket is made with mode 0600, so that nobody else connects before
  const int bound = bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const int error = errno;
  umask(mask);
  if (bound != 0 || listen(descriptor, kBacklog) != 0) {
    ::close(descriptor);
    if (bound != 0 && error == EADDRINUSE)
      throw Error(ErrorKind::kIo, "the path is taken")
          .in(Setting::kUnix)
          .expected("a path where nothing is, or a socket that nobody listens on any more")
          .found(path)
          .fix("give another path, or remove what is there");
    throw io_error("listen on", path, bound != 0 ? error : errno);
  }
  return described(descriptor);
}

std::optional<Listening> inherited_socket() {
  constexpr int kFirst = 3;
  const char *process = std::getenv("LISTEN_PID"), *count = std::getenv("LISTEN_FDS");
  if (process == nullptr || count == nullptr || std::to_string(getpid()) != process || std::atoi(count) < 1)
    return std::nullopt;
  unsetenv("LISTEN_PID");
  unsetenv("LISTEN_FDS");
  unsetenv("LISTEN_FDNAMES");
  return described(kFirst);
}

bool is_loopback_host(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

void notify_service_manager(std::string_view state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (path == nullptr || (path[0] != '/' && path[0] != '@') || std::strlen(path) >= sizeof(address.sun_path))
    return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path, std::strlen(path));
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';  // an abstract name
  const int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
  sendto(descriptor, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
         length);
  ::close(descriptor);
}

}  // namespace sluice::serve::http
