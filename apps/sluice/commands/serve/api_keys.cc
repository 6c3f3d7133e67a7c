#include "commands/serve/api_keys.h"

#include <cstdlib>
#include <sstream>

#include "base/error.h"
#include "base/files/file.h"
#include "base/setting.h"

namespace sluice::app {
namespace {

constexpr Bytes kMostKeyFile = 64 * kKiB;

}  // namespace

std::vector<std::string> api_keys(const ServeFlags& flags) {
  std::vector<std::string> keys = flags.api_keys;
  for (const std::string& key : keys)
    if (key.empty())
      throw Error(ErrorKind::kUsage, "a key is empty").in(Setting::kApiKey).expected("text").found("\"\"");
  if (!flags.api_key_file.empty()) {
    std::istringstream lines(read_text_file(flags.api_key_file, kMostKeyFile));
    const std::size_t before = keys.size();
    for (std::string line; std::getline(lines, line);) {
      const std::size_t begin = line.find_first_not_of(" \t\r"), end = line.find_last_not_of(" \t\r");
      if (begin == line.npos || line[begin] == '#') continue;
      keys.push_back(line.substr(begin, end - begin + 1));
    }
    if (keys.size() == before)
      throw Error(ErrorKind::kUsage, "the file has no key")
          .in(flags.api_key_file)
          .expected("a key on each line")
          .found("none")
          .fix("write one into it, or leave " + Setting::kApiKeyFile + " out");
  }
  if (const char* const key = std::getenv("SLUICE_API_KEY"); key != nullptr && *key != '\0')
    keys.push_back(key);
  return keys;
}

}  // namespace sluice::app
