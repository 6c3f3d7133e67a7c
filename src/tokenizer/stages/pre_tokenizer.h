// Cuts normalised text into the pieces that merges never cross: the pre-tokenizers of tokenizer.json.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "tokenizer/text/pattern.h"

namespace sluice::tokenizer {

struct Piece {
  // Well-formed UTF-8, not empty; valid only during the call that passes it on.
  std::string_view text;
  bool at_start;  // begins where the whole input begins
};

// Immutable; thread-safe. Passes pieces on one by one, in order, without collecting them.
class PreTokenizer {
 public:
  using Emit = FunctionRef<void(const Piece&)>;
  virtual ~PreTokenizer() = default;
  virtual void split(const Piece& piece, Emit emit) const = 0;
};

// What happens to a match (SplitDelimiterBehavior of tokenizers).
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };
enum class Invert { kNo, kYes };  // kYes: the text between the matches counts as matched
enum class PrependScheme { kAlways, kFirst, kNever };

std::unique_ptr<PreTokenizer> split_pre_tokenizer(std::unique_ptr<Pattern> pattern, SplitBehavior behavior,
                                                  Invert invert);
struct ByteLevelOptions {
  bool add_prefix_space = true;
  bool use_regex = true;
};
std::unique_ptr<PreTokenizer> byte_level_pre_tokenizer(const ByteLevelOptions& options);
struct MetaspaceOptions {
  char32_t replacement = 0x2581;  // LOWER ONE EIGHTH BLOCK
  PrependScheme prepend = PrependScheme::kAlways;
  bool split = true;
};
std::unique_ptr<PreTokenizer> metaspace_pre_tokenizer(const MetaspaceOptions& options);
std::unique_ptr<PreTokenizer> sequence_pre_tokenizer(
    std::vector<std::unique_ptr<PreTokenizer>> pre_tokenizers);

}  // namespace sluice::tokenizer
