#include "serve/http/request_id.h"

#include <sys/random.h>

#include <cstdint>
#include <vector>

namespace sluice::serve::http {

std::string random_name(std::string_view prefix, std::size_t letters) {
  static constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::string name(prefix);
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < letters; ++i) {
    if (i % 8 == 0) {
      while (getrandom(&word, sizeof(word), 0) != static_cast<ssize_t>(sizeof(word))) {
      }
    }
    name += kLetters[word % kLetters.size()];
    word /= kLetters.size();
  }
  return name;
}

}  // namespace sluice::serve::http
