#include "serve/engine/client_message.h"

#include "base/setting.h"

namespace sluice::serve {
namespace {

// Absolute paths say how a machine is built; a file's name is enough to find it.
std::string without_folders(std::string text) {
  for (std::size_t begin = text.find('/'); begin != text.npos; begin = text.find('/', begin + 1)) {
    if (begin > 0 && text[begin - 1] != ' ' && text[begin - 1] != '"' && text[begin - 1] != '(') continue;
    const std::size_t end = text.find_first_of(" :,;\")", begin);
    const std::size_t last = text.rfind('/', end == text.npos ? text.size() - 1 : end - 1);
    if (last != text.npos && last >= begin) text.erase(begin, last - begin + 1);
  }
  return text;
}

}  // namespace

std::string client_message(const Error& error) {
  std::string text;
  const auto add = [&](std::string_view before, const std::string& part) {
    if (!part.empty()) text.append(before).append(part);
  };
  add("", error.where());
  if (error.offset()) text += " at byte " + std::to_string(*error.offset());
  add(text.empty() ? "" : ": ", error.message());
  add("; expected ", error.expected_text());
  add(error.expected_text().empty() ? "; found " : ", found ", error.found_text());
  return without_folders(with_names(text, NamedBy::kField));
}

}  // namespace sluice::serve
