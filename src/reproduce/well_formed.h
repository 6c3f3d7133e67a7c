// For tests: whether a text is well-formed XML, as far as plots use it (elements, attributes, text, the five
// entities; no declarations, comments or CDATA). Header only; production code does not include it.
#pragma once

#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::testing {

// Empty, or the fault and its place.
inline std::string xml_fault(std::string_view text) {
  std::size_t at = 0;
  std::vector<std::string> open;
  bool root_seen = false;
  const auto fault = [&](const std::string& what) { return what + " at byte " + std::to_string(at); };
  const auto name_char = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == ':' || c == '.';
  };
  const auto name = [&] {
    const std::size_t begin = at;
    while (at < text.size() && name_char(text[at])) ++at;
    return std::string(text.substr(begin, at - begin));
  };
  const auto spaces = [&] {
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at]))) ++at;
  };
  const auto entity = [&] {
    for (const std::string_view known : {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"})
      if (text.substr(at).starts_with(known)) {
        at += known.size();
        return true;
      }
    return false;
  };
  while (at < text.size()) {
    if (text[at] != '<') {
      if (open.empty() && !std::isspace(static_cast<unsigned char>(text[at])))
        return fault("text outside the root");
      if (text[at] == '&') {
        if (!entity()) return fault("a bare &");
      } else {
        ++at;
      }
      continue;
    }
    ++at;
    if (at < text.size() && text[at] == '/') {
      ++at;
      const std::string closed = name();
      if (open.empty() || open.back() != closed) return fault("</" + closed + "> closes nothing");
      open.pop_back();
      if (at == text.size() || text[at++] != '>') return fault("no >");
      continue;
    }
    const std::string element = name();
    if (element.empty()) return fault("an element without a name");
    if (open.empty() && root_seen) return fault("a second root");
    root_seen = true;
    std::set<std::string> attributes;
    for (;;) {
      spaces();
      if (at == text.size()) return fault("the end inside a tag");
      if (text[at] == '>') {
        ++at;
        open.push_back(element);
        break;
      }
      if (text.substr(at).starts_with("/>")) {
        at += 2;
        break;
      }
      const std::string attribute = name();
      if (attribute.empty() || !attributes.insert(attribute).second)
        return fault("attribute \"" + attribute + "\" in " + element);
      if (!text.substr(at).starts_with("=\"")) return fault("an attribute without a value");
      for (at += 2; at < text.size() && text[at] != '"';) {
        if (text[at] == '<') return fault("< in an attribute");
        if (text[at] == '&' ? !entity() : (++at, false)) return fault("a bare &");
      }
      if (at == text.size()) return fault("the end inside an attribute");
      ++at;
    }
  }
  if (!open.empty()) return fault("<" + open.back() + "> is not closed");
  return root_seen ? "" : fault("no root");
}

}  // namespace sluice::testing
