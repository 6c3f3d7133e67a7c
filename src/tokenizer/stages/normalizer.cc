#include "tokenizer/stages/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "tokenizer/stages/byte_level.h"
#include "tokenizer/text/text_check.h"
#include "tokenizer/text/unicode.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

class UnicodeNormalizer final : public Normalizer {
 public:
  explicit UnicodeNormalizer(NormalForm form)
      : compose_(form == NormalForm::kNfc || form == NormalForm::kNfkc),
        compatible_(form == NormalForm::kNfkc || form == NormalForm::kNfkd) {}

  void normalize(std::string& text) const override {
    const std::size_t first = unchanged_prefix(text);
    if (first == text.size()) return;
    std::vector<utf8proc_int32_t> points;
    std::string out(text, 0, first);
    const std::string_view rest = std::string_view(text).substr(first);
    for (std::size_t at = 0; at < rest.size();) {
      const CodePoint c = decode_valid_utf8(rest.substr(at));
      at += c.length;
      if (is_normalization_inert(c.value)) {
        flush(points, out);
        append_utf8(out, c.value);
      } else {
        decompose(c.value, points);
      }
    }
    flush(points, out);
    text = std::move(out);
  }

 private:
  // Bytes at the beginning that no form changes. Characters below the first combining mark have no combining
  // class; ASCII has no decomposition, Latin-1 and its extensions no NFC change. The last such character may
  // combine with its successor.
  std::size_t unchanged_prefix(std::string_view text) const {
    const char32_t end = compose_ && !compatible_ ? 0x300 : 0x80;
    std::size_t at = 0, last = 0;
    while (at < text.size()) {
      const CodePoint c = decode_valid_utf8(text.substr(at));
      if (c.value >= end) return last;
      last = at;
      at += c.length;
    }
    return at;
  }

  void decompose(char32_t c, std::vector<utf8proc_int32_t>& points) const {
    if (c < 0x80) {
      points.push_back(static_cast<utf8proc_int32_t>(c));
      return;
    }
    utf8proc_int32_t parts[32];  // the longest decomposition has 18
    unsigned options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    if (compatible_) options |= UTF8PROC_COMPAT;
    const utf8proc_ssize_t n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, 32,
                                                       static_cast<utf8proc_option_t>(options), nullptr);
    SLUICE_CHECK(n > 0 && n <= 32, std::to_string(static_cast<unsigned>(c)));
    points.insert(points.end(), parts, parts + n);
  }

  // Writes the points in canonical order, composed. utf8proc_map sorts marks by exchanging neighbours, which
  // is quadratic in a long run of marks; hence the stable sort here.
  void flush(std::vector<utf8proc_int32_t>& points, std::string& out) const {
    const auto combining_class = [](utf8proc_int32_t c) -> unsigned {
      return c < 0x300 ? 0u : utf8proc_get_property(c)->combining_class;
    };
    for (std::size_t i = 0; i < points.size();) {
      if (combining_class(points[i]) == 0) {
        ++i;
        continue;
      }
      std::size_t end = i + 1;
      while (end < points.size() && combining_class(points[end]) != 0) ++end;
      const auto at = [&](std::size_t k) { return points.begin() + static_cast<std::ptrdiff_t>(k); };
      if (end - i > 1) {
        std::stable_sort(at(i), at(end), [&](utf8proc_int32_t a, utf8proc_int32_t b) {
          return combining_class(a) < combining_class(b);
        });
      }
      i = end;
    }
    auto size = static_cast<utf8proc_ssize_t>(points.size());
    if (compose_ && size > 0) {
      size = utf8proc_normalize_utf32(points.data(), size,
                                      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
      SLUICE_CHECK(size >= 0, utf8proc_errmsg(size));
    }
    for (utf8proc_ssize_t i = 0; i < size; ++i)
      append_utf8(out, static_cast<char32_t>(points[static_cast<std::size_t>(i)]));
    points.clear();
  }

  bool compose_, compatible_;
};

// Passes one character at a time to `change`, which appends the result.
template <class Change>
void map_characters(std::string& text, Change change) {
  std::string out;
  out.reserve(text.size());
  const std::string_view view = text;
  for (std::size_t at = 0; at < view.size();) {
    const CodePoint c = decode_valid_utf8(view.substr(at));
    change(c.value, view.substr(at, c.length), out);
    at += c.length;
  }
  text = std::move(out);
}

class Lowercase final : public Normalizer {
 public:
  void normalize(std::string& text) const override {
    map_characters(text, [](char32_t c, std::string_view, std::string& out) {
      if (c == 0x130) {  // I with dot above: the only lower case of two characters
        out += "i\xCC\x87";
      } else {
        append_utf8(out, to_lower(c));
      }
    });
  }
};

class StripAccents final : public Normalizer {
 public:
  void normalize(std::string& text) const override {
    map_characters(text, [](char32_t c, std::string_view bytes, std::string& out) {
      if (!is_mark(c)) out += bytes;
    });
  }
};

class Strip final : public Normalizer {
 public:
  explicit Strip(StripEnds ends)
      : left_(ends == StripEnds::kLeft || ends == StripEnds::kBoth),
        right_(ends == StripEnds::kRight || ends == StripEnds::kBoth) {}

  void normalize(std::string& text) const override {
    std::string_view rest = text;
    while (left_ && !rest.empty()) {
      const CodePoint c = decode_valid_utf8(rest);
      if (!is_white_space(c.value)) break;
      rest.remove_prefix(c.length);
    }
    while (right_ && !rest.empty()) {
      const CodePoint c = decode_last_utf8(rest);
      if (!is_white_space(c.value)) break;
      rest.remove_suffix(c.length);
    }
    text = std::string(rest);
  }

 private:
  bool left_, right_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  void normalize(std::string& text) const override {
    if (!text.empty()) text.insert(0, prefix_);
  }

 private:
  std::string prefix_;
};

class Replace final : public Normalizer {
 public:
  Replace(std::unique_ptr<Pattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void normalize(std::string& text) const override {
    std::string out;
    out.reserve(text.size());
    pattern_->find(text, [&](const Match& match) {
      out += match.matched ? std::string_view(content_)
                           : std::string_view(text).substr(match.begin, match.end - match.begin);
      check_grown(out.size());
    });
    text = std::move(out);
  }

 private:
  std::unique_ptr<Pattern> pattern_;
  std::string content_;
};

class ByteLevelNormalizer final : public Normalizer {
 public:
  void normalize(std::string& text) const override {
    std::string out;
    out.reserve(text.size());
    append_byte_level(out, text);
    text = std::move(out);
  }
};

class NormalizerSequence final : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<std::unique_ptr<Normalizer>> normalizers)
      : normalizers_(std::move(normalizers)) {}
  void normalize(std::string& text) const override {
    for (const auto& normalizer : normalizers_) {
      normalizer->normalize(text);
      check_grown(text.size());
    }
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> normalizers_;
};

}  // namespace

std::unique_ptr<Normalizer> unicode_normalizer(NormalForm form) {
  return std::make_unique<UnicodeNormalizer>(form);
}
std::unique_ptr<Normalizer> lowercase_normalizer() { return std::make_unique<Lowercase>(); }
std::unique_ptr<Normalizer> strip_accents_normalizer() { return std::make_unique<StripAccents>(); }
std::unique_ptr<Normalizer> strip_normalizer(StripEnds ends) { return std::make_unique<Strip>(ends); }
std::unique_ptr<Normalizer> prepend_normalizer(std::string prefix) {
  return std::make_unique<Prepend>(std::move(prefix));
}
std::unique_ptr<Normalizer> replace_normalizer(std::unique_ptr<Pattern> pattern, std::string content) {
  return std::make_unique<Replace>(std::move(pattern), std::move(content));
}
std::unique_ptr<Normalizer> byte_level_normalizer() { return std::make_unique<ByteLevelNormalizer>(); }
std::unique_ptr<Normalizer> sequence_normalizer(std::vector<std::unique_ptr<Normalizer>> normalizers) {
  return std::make_unique<NormalizerSequence>(std::move(normalizers));
}

}  // namespace sluice::tokenizer
