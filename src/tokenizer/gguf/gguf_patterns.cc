#include "tokenizer/gguf/gguf_patterns.h"

#include <algorithm>

#include "base/error.h"
#include "tokenizer/stages/byte_level.h"
#include "tokenizer/text/advice.h"
#include "tokenizer/text/printable.h"

// Parts of patterns in the syntax of tokenizer.json: English endings; words that begin with capitals, or end
// with small letters; and what is left: line ends and white space.
#define ENDINGS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define CAPITALS R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define SMALL R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define BEFORE_WORD R"([^\r\n\p{L}\p{N}]?)"
#define SIGNS R"( ?[^\s\p{L}\p{N}]+[\r\n]*)"
#define SIGNS_AND_SLASHES R"( ?[^\s\p{L}\p{N}]+[\r\n/]*)"
#define SPACE R"(\s*[\r\n]+|\s+(?!\S)|\s+)"

namespace sluice::tokenizer {
namespace {

using Texts = std::span<const std::string_view>;

constexpr std::string_view kPatternKey = "tokenizer.ggml.pre";

constexpr std::string_view kGpt2[] = {kGpt2Pattern};
constexpr std::string_view kLlama3[] = {ENDINGS "|" BEFORE_WORD R"(\p{L}+|\p{N}{1,3}|)" SIGNS "|" SPACE};
constexpr std::string_view kQwen2[] = {ENDINGS "|" BEFORE_WORD R"(\p{L}+|\p{N}|)" SIGNS "|" SPACE};
constexpr std::string_view kQwen35[] = {
    ENDINGS "|" BEFORE_WORD R"([\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" SPACE};
constexpr std::string_view kGpt4o[] = {BEFORE_WORD CAPITALS "*" SMALL "+" ENDINGS "?|" BEFORE_WORD CAPITALS
                                                            "+" SMALL "*" ENDINGS
                                                            R"(?|\p{N}{1,3}|)" SIGNS_AND_SLASHES "|" SPACE};
constexpr std::string_view kTekken[] = {BEFORE_WORD CAPITALS "*" SMALL "+|" BEFORE_WORD CAPITALS "+" SMALL
                                                             R"(*|\p{N}|)" SIGNS_AND_SLASHES "|" SPACE};
constexpr std::string_view kDeepseek3[] = {
    R"(\p{N}{1,3})", R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+[\r\n]*|)" SPACE};
// The letters are those of alphabets with capitals, as the model's own tokenizer lists them.
constexpr std::string_view kDeepseekLlm[] = {
    R"([\r\n])",
    R"(\s?[A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293})"
    R"(\x{295}-\x{2af}\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a}\x{38c})"
    R"(\x{38e}-\x{3a1}\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556}\x{10a0}-\x{10c5})"
    R"(\x{13a0}-\x{13f5}\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf}\x{1d00}-\x{1d2b})"
    R"(\x{1d6b}-\x{1d77}\x{1d79}-\x{1d9a}\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d}\x{1f20}-\x{1f45})"
    R"(\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d}\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4})"
    R"(\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4}\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb})"
    R"(\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4}\x{1ff6}-\x{1ffc}\x{2102}\x{2107}\x{210a}-\x{2113}\x{2115})"
    R"(\x{2119}-\x{211d}\x{2124}\x{2126}\x{2128}\x{212a}-\x{212d}\x{212f}-\x{2134}\x{2139})"
    R"(\x{213c}-\x{213f}\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4})"
    R"(\x{2ceb}-\x{2cee}\x{2cf2}\x{2cf3}\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f})"
    R"(\x{a771}-\x{a787}\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17})"
    R"(\x{ff21}-\x{ff3a}\x{ff41}-\x{ff5a}\x{10400}-\x{1044f}\x{104b0}-\x{104d3}\x{104d8}-\x{104fb})"
    R"(\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df}\x{1e900}-\x{1e943}]+)",
    R"(\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3000}-\x{3002}]+)",
    R"(\s+$)",
    R"([\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+)",
    R"(\p{N}+)"};
constexpr std::string_view kDeepseekCoder[] = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                               R"([\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+)",
                                               R"(\p{N})"};
// Words without Chinese characters, which the first alternative takes.
#define NOT_HAN(set) R"((?:(?!\p{Han}))" set ")"
constexpr std::string_view kKimi[] = {
    R"([\p{Han}]+|)" BEFORE_WORD NOT_HAN(CAPITALS) "*" NOT_HAN(SMALL) "+" ENDINGS "?|" BEFORE_WORD NOT_HAN(
        CAPITALS) "+" NOT_HAN(SMALL) "*" ENDINGS R"(?|\p{N}{1,3}|)" SIGNS "|" SPACE};
constexpr std::string_view kBailing[] = {
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr std::string_view kDigits[] = {R"(\p{N})", kGpt2Pattern};
constexpr std::string_view kFalcon[] = {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2Pattern, "[0-9][0-9][0-9]"};

constexpr std::string_view kGpt2Names[] = {"gpt-2",   "olmo",    "mpt",        "jais",
                                           "exaone4", "a.x-4.0", "modern-bert"};
constexpr std::string_view kLlama3Names[] = {"llama-bpe", "llama3", "llama-v3", "lfm2", "falcon3", "pixtral"};
constexpr std::string_view kDbrxNames[] = {"dbrx", "smaug-bpe", "chatglm-bpe"};
constexpr std::string_view kGlmNames[] = {"glm4", "glm5"};
constexpr std::string_view kQwen2Names[] = {"qwen2"};
constexpr std::string_view kLikeQwen2Names[] = {"deepseek-r1-qwen", "hunyuan", "megrez",
                                                "solar-open",       "grok-2",  "stablelm2"};
constexpr std::string_view kQwen35Names[] = {"qwen35"};
constexpr std::string_view kGpt4oNames[] = {"gpt-4o", "llama4", "kanana2", "minimax-m2"};
constexpr std::string_view kTekkenNames[] = {"tekken"};
constexpr std::string_view kDeepseek3Names[] = {"deepseek-v3", "hunyuan-dense", "hy_v4", "joyai-llm"};
constexpr std::string_view kDeepseekLlmNames[] = {"deepseek-llm"};
constexpr std::string_view kDeepseekCoderNames[] = {"deepseek-coder"};
constexpr std::string_view kKimiNames[] = {"kimi-k2"};
constexpr std::string_view kBailingNames[] = {"bailingmoe", "bailingmoe2", "llada-moe"};
constexpr std::string_view kDigitsNames[] = {"smollm",    "starcoder", "refact", "command-r",
                                             "codeshell", "exaone",    "mellum2"};
constexpr std::string_view kFalconNames[] = {"falcon"};

constexpr GgufPatterns kPatterns[] = {
    {.names = kGpt2Names, .patterns = kGpt2},
    {.names = kLlama3Names, .patterns = kLlama3, .ignore_merges = true, .add_bos = true},
    {.names = kDbrxNames, .patterns = kLlama3},
    {.names = kGlmNames, .patterns = kLlama3, .ignore_merges = true},
    {.names = kQwen2Names, .patterns = kQwen2, .nfc = true},
    {.names = kLikeQwen2Names, .patterns = kQwen2},
    {.names = kQwen35Names, .patterns = kQwen35, .nfc = true},
    {.names = kGpt4oNames, .patterns = kGpt4o},
    {.names = kTekkenNames, .patterns = kTekken, .ignore_merges = true, .add_bos = true},
    {.names = kDeepseek3Names, .patterns = kDeepseek3},
    {.names = kDeepseekLlmNames, .patterns = kDeepseekLlm},
    {.names = kDeepseekCoderNames, .patterns = kDeepseekCoder},
    {.names = kKimiNames, .patterns = kKimi, .ids_are_ranks = true},
    {.names = kBailingNames, .patterns = kBailing},
    {.names = kDigitsNames, .patterns = kDigits},
    {.names = kFalconNames, .patterns = kFalcon},
};

}  // namespace

std::span<const GgufPatterns> gguf_patterns() { return kPatterns; }

const GgufPatterns* find_gguf_patterns(const GgufKeys& keys, const GgufModel& model) {
  if (model.merging != GgufMerging::kByteLevel) return nullptr;
  const std::string* const name = keys.string(kPatternKey);
  if (name == nullptr) return nullptr;
  const auto row = std::ranges::find_if(kPatterns, [&](const GgufPatterns& patterns) {
    return std::ranges::find(patterns.names, *name) != patterns.names.end();
  });
  return row == std::end(kPatterns) ? nullptr : &*row;
}

const GgufPatterns& gguf_patterns_of(const GgufKeys& keys, const GgufModel& model) {
  if (const GgufPatterns* const patterns = find_gguf_patterns(keys, model)) return *patterns;
  const std::string* const name = keys.string(kPatternKey);
  throw Error(ErrorKind::kUnsupported, "tokenizer that cuts text in a way that is not known")
      .in(keys.place(kPatternKey))
      .expected("a name that docs/formats.md lists")
      .found(name == nullptr ? "no such key" : printable(*name))
      .fix(tokens_instead_of_text());
}

}  // namespace sluice::tokenizer
