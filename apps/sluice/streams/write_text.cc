#include "streams/write_text.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace sluice::app {

int write_text(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count > 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (count < 0 && errno == EAGAIN) {
      struct pollfd output = {fd, POLLOUT, 0};
      ::poll(&output, 1, -1);
    } else if (count == 0 || errno != EINTR) {
      return count == 0 ? EIO : errno;
    }
  }
  return 0;
}

}  // namespace sluice::app
