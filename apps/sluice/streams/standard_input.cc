#include "streams/standard_input.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <streambuf>

#include "base/error.h"
#include "base/stop_request.h"
#include "streams/interrupt.h"

namespace sluice::app {
namespace {

// A signal ends poll() even with SA_RESTART; one that arrives just before poll() is seen at most this much
// later.
constexpr int kLatestMs = 100;

class InterruptibleBuffer final : public std::streambuf {
 private:
  int_type underflow() override {
    ssize_t count = -1;
    while (count < 0) {
      struct pollfd input = {STDIN_FILENO, POLLIN, 0};
      const int ready = ::poll(&input, 1, kLatestMs);
      if (interrupted()) throw interrupted_error();
      if (ready <= 0) continue;
      count = ::read(STDIN_FILENO, bytes_.data(), bytes_.size());
      if (count < 0 && errno != EINTR && errno != EAGAIN) throw io_error("read", "standard input", errno);
    }
    setg(bytes_.data(), bytes_.data(), bytes_.data() + count);
    return count == 0 ? traits_type::eof() : traits_type::to_int_type(bytes_[0]);
  }

  std::array<char, 1 << 16> bytes_;
};

}  // namespace

std::istream& standard_input() {
  static InterruptibleBuffer buffer;
  static std::istream stream(&buffer);
  return stream;
}

}  // namespace sluice::app
