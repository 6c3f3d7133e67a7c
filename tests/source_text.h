// The repository's sources as text, for tests that look for what no compiler finds.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>

namespace sluice::testing {

// The end of the string, raw string or character that starts at `at`; `at` if no literal starts there.
inline std::size_t skip_literal(std::string_view source, std::size_t at) {
  const char before = at > 0 ? source[at - 1] : ' ';
  if (source[at] == '"' && before == 'R') {
    const std::size_t open = source.find('(', at);
    const std::string close = ")" + std::string(source.substr(at + 1, open - at - 1)) + "\"";
    return std::min(source.size(), source.find(close, open) + close.size());
  }
  const bool digits = source[at] == '\'' && std::isalnum(static_cast<unsigned char>(before));  // 1'000
  if ((source[at] != '"' && source[at] != '\'') || digits) return at;
  std::size_t end = at + 1;
  while (end < source.size() && source[end] != source[at]) end += source[end] == '\\' ? 2 : 1;
  return end + 1;
}

// Sources of C++ and CUDA, headers among them. Tests that hold for a kind of file say which names they leave
// out, never which endings they look at.
inline bool is_source(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  return ending == ".h" || ending == ".cc" || ending == ".cu" || ending == ".cuh";
}

// Calls body(path, text) for each file of these folders that `wanted` accepts; `path` starts at the
// repository's root. Returns how many there were.
template <class Wanted, class Body>
std::size_t each_source(std::initializer_list<const char*> folders, const Wanted& wanted, const Body& body) {
  namespace fs = std::filesystem;
  const fs::path root = SLUICE_SOURCE_DIR;
  std::size_t files = 0;
  for (const char* folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file() || !wanted(entry.path())) continue;
      ++files;
      std::ifstream file(entry.path());
      body(fs::relative(entry.path(), root).string(),
           std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
    }
  }
  return files;
}

}  // namespace sluice::testing
