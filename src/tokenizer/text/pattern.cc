#include "tokenizer/text/pattern.h"

#include <utility>

#include "base/error.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

class Literal final : public Pattern {
 public:
  explicit Literal(std::string text) : text_(std::move(text)) { SLUICE_CHECK(!text_.empty()); }

  void find(std::string_view text, FunctionRef<void(const Match&)> report) const override {
    std::size_t done = 0;
    for (std::size_t at; (at = text.find(text_, done)) != std::string_view::npos; done = at + text_.size()) {
      if (at > done) report({done, at, false});
      report({at, at + text_.size(), true});
    }
    if (done < text.size()) report({done, text.size(), false});
  }

 private:
  std::string text_;
};

class Character final : public Pattern {
 public:
  explicit Character(bool (*predicate)(char32_t)) : predicate_(predicate) {}

  void find(std::string_view text, FunctionRef<void(const Match&)> report) const override {
    std::size_t done = 0;
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = decode_valid_utf8(text.substr(at));
      const std::size_t end = at + c.length;
      if (predicate_(c.value)) {
        if (at > done) report({done, at, false});
        report({at, end, true});
        done = end;
      }
      at = end;
    }
    if (done < text.size()) report({done, text.size(), false});
  }

 private:
  bool (*predicate_)(char32_t);
};

}  // namespace

std::unique_ptr<Pattern> literal_pattern(std::string text) {
  return std::make_unique<Literal>(std::move(text));
}

std::unique_ptr<Pattern> character_pattern(bool (*predicate)(char32_t)) {
  return std::make_unique<Character>(predicate);
}

}  // namespace sluice::tokenizer
