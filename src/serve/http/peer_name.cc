#include "serve/http/peer_name.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

namespace sluice::serve::http {

std::string peer_name(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &four.sin_addr, text, sizeof(text));
    return std::string(text) + ':' + std::to_string(ntohs(four.sin_port));
  }
  if (address.ss_family == AF_INET6) {
    const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof(text));
    return '[' + std::string(text) + "]:" + std::to_string(ntohs(six.sin6_port));
  }
  return "unix";
}

void no_delay(int descriptor, const sockaddr_storage& address) {
  const int on = 1;
  if (address.ss_family != AF_UNIX) setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace sluice::serve::http
