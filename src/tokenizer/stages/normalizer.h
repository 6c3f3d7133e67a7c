// Changes a text before it is cut: the normalizers of tokenizer.json.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tokenizer/stages/chars_map.h"
#include "tokenizer/text/pattern.h"

namespace sluice::tokenizer {

// Immutable; thread-safe. `text` is well-formed UTF-8 before and after.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void normalize(std::string& text) const = 0;
};

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
enum class StripEnds { kNone, kLeft, kRight, kBoth };

// Unicode 9 tables, as in tokenizers (unicode.h). Linear in the text, even with many combining marks.
std::unique_ptr<Normalizer> unicode_normalizer(NormalForm form);
std::unique_ptr<Normalizer> lowercase_normalizer();      // character by character, without context
std::unique_ptr<Normalizer> strip_accents_normalizer();  // removes combining marks
std::unique_ptr<Normalizer> strip_normalizer(StripEnds ends);
std::unique_ptr<Normalizer> prepend_normalizer(std::string prefix);  // adds nothing to an empty text
std::unique_ptr<Normalizer> replace_normalizer(std::unique_ptr<Pattern> pattern, std::string content);
std::unique_ptr<Normalizer> byte_level_normalizer();
std::unique_ptr<Normalizer> precompiled_normalizer(CharsMap map);
std::unique_ptr<Normalizer> sequence_normalizer(std::vector<std::unique_ptr<Normalizer>> normalizers);

}  // namespace sluice::tokenizer
