#include "tokenizer/gguf/gguf_model.h"

#include "base/error.h"
#include "tokenizer/text/advice.h"
#include "tokenizer/text/printable.h"

namespace sluice::tokenizer {
namespace {

constexpr std::string_view kModelKey = "tokenizer.ggml.model";

constexpr GgufModel kModels[] = {
    {.name = "gpt2",
     .merging = GgufMerging::kByteLevel,
     .bos = 11,
     .eos = 11,
     .unknown = -1,
     .add_bos = false,
     .always_bos = false},
    {.name = "llama",
     .merging = GgufMerging::kScores,
     .bos = 1,
     .eos = 2,
     .unknown = 0,
     .add_bos = true,
     .always_bos = false},
    {.name = "gemma4",
     .merging = GgufMerging::kRawText,
     .bos = -1,
     .eos = -1,
     .unknown = -1,
     .add_bos = true,
     .always_bos = true},
};
constexpr std::string_view kNone[] = {"none", "no_vocab"};

}  // namespace

const GgufModel* find_gguf_model(const GgufKeys& keys) {
  const std::string* const name = keys.string(kModelKey);
  for (const GgufModel& model : kModels)
    if (name != nullptr && *name == model.name) return &model;
  return nullptr;
}

const GgufModel* gguf_model_of(const GgufKeys& keys) {
  const std::string* const name = keys.string(kModelKey);
  if (name == nullptr) return nullptr;
  for (const std::string_view none : kNone)
    if (*name == none) return nullptr;
  if (const GgufModel* const model = find_gguf_model(keys)) return model;
  throw Error(ErrorKind::kUnsupported, "tokenizer of a kind that is not supported")
      .in(keys.place(kModelKey))
      .expected("gpt2, llama or gemma4")
      .found(printable(*name))
      .fix(tokens_instead_of_text());
}

}  // namespace sluice::tokenizer
