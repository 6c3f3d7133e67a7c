// The Precompiled normalizer of tokenizers 0.23: looks up each grapheme cluster of up to five bytes as a
// whole, and longer clusters character by character. A cluster that only begins with a key is replaced as a
// whole, so its other characters vanish; published ids depend on this.
#include <utf8proc.h>

#include <algorithm>

#include "tokenizer/stages/normalizer.h"
#include "tokenizer/text/text_check.h"
#include "tokenizer/text/unicode.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

constexpr std::size_t kLongestCluster = 5;

// Segmentation in tokenizers uses Unicode 16, utf8proc Unicode 15. They differ in new marks, and in the
// unassigned code points among the tags, which are control characters to tokenizers.
bool is_unassigned_tag(char32_t c) {
  return c >= 0xE0000 && c <= 0xE0FFF && !(c >= 0xE0020 && c <= 0xE007F) && !(c >= 0xE0100 && c <= 0xE01EF);
}

bool is_new_mark(char32_t c) {
  return std::ranges::any_of(newer_than_pcre2(), [&](const CategoryRange& range) {
    return c >= range.first && c <= range.last && range.category.starts_with('M');
  });
}

bool is_control(char32_t c) {
  const int boundary = utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->boundclass;
  return boundary == UTF8PROC_BOUNDCLASS_CONTROL || boundary == UTF8PROC_BOUNDCLASS_CR ||
         boundary == UTF8PROC_BOUNDCLASS_LF;
}

bool is_boundary(char32_t last, char32_t next, utf8proc_int32_t& state) {
  const bool plain = utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last),
                                                      static_cast<utf8proc_int32_t>(next), &state);
  if (is_unassigned_tag(last) || is_unassigned_tag(next)) return true;
  return plain && !(next > 0x300 && is_new_mark(next) && !is_control(last));
}

// Bytes of the first extended grapheme cluster of well-formed, non-empty text.
std::size_t cluster_length(std::string_view text) {
  CodePoint last = decode_valid_utf8(text);
  std::size_t length = last.length;
  utf8proc_int32_t state = 0;
  while (length < text.size()) {
    const CodePoint next = decode_valid_utf8(text.substr(length));
    if (is_boundary(last.value, next.value, state)) break;
    length += next.length;
    last = next;
  }
  return length;
}

class PrecompiledNormalizer final : public Normalizer {
 public:
  explicit PrecompiledNormalizer(CharsMap map) : map_(std::move(map)) {}

  void normalize(std::string& text) const override {
    std::string out;
    out.reserve(text.size());
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::size_t length = cluster_length(rest);
      add_cluster(rest.substr(0, length), out);
      rest.remove_prefix(length);
    }
    text = std::move(out);
  }

 private:
  void add_cluster(std::string_view cluster, std::string& out) const {
    if (cluster.size() <= kLongestCluster) {
      if (const auto whole = map_.find(cluster)) return add(*whole, out);
    }
    while (!cluster.empty()) {
      const std::string_view character = cluster.substr(0, decode_valid_utf8(cluster).length);
      add(map_.find(character).value_or(character), out);
      cluster.remove_prefix(character.size());
    }
  }

  // A cluster may be as long as the text, so the growth is checked for every piece.
  static void add(std::string_view piece, std::string& out) {
    check_grown(out.size() + piece.size());
    out += piece;
  }

  CharsMap map_;
};

}  // namespace

std::unique_ptr<Normalizer> precompiled_normalizer(CharsMap map) {
  return std::make_unique<PrecompiledNormalizer>(std::move(map));
}

}  // namespace sluice::tokenizer
