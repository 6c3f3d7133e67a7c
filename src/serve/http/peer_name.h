// Names and settings of a socket's other end.
#pragma once

#include <sys/socket.h>

#include <string>

namespace sluice::serve::http {

std::string peer_name(const sockaddr_storage& address);          // "127.0.0.1:51234", "[::1]:51234", "unix"
void no_delay(int descriptor, const sockaddr_storage& address);  // small writes go out at once

}  // namespace sluice::serve::http
