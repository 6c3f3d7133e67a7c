#include "tokenizer/export/gguf_cut.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/json/json.h"
#include "base/setting.h"
#include "tokenizer/export/number_joins.h"
#include "tokenizer/gguf/gguf_patterns.h"
#include "tokenizer/stages/byte_level.h"
#include "tokenizer/text/printable.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

std::string type_in(const Json& stage) { return JsonObject(stage, "stage").string_or("type", ""); }

bool flag_in(const Json& stage, std::string_view key, bool otherwise) {
  return JsonObject(stage, "stage").boolean_or(key, otherwise);
}

// The stages of a sequence, which may hold sequences; `list` is the field that holds them.
void append_stages(const Json* value, const char* list, std::vector<Json>& stages) {
  if (value == nullptr || value->is_null()) return;
  if (type_in(*value) != "Sequence") return stages.push_back(*value);
  for (const Json& part : value->at(list)) append_stages(&part, list, stages);
}

std::vector<Json> stages_in(const Json& components, const char* field, const char* list) {
  std::vector<Json> stages;
  const auto found = components.find(field);
  if (found != components.end()) append_stages(&*found, list, stages);
  return stages;
}

// Patterns are compared with line ends and letters beyond ASCII as such, however they are spelled.
std::string respelled(std::string_view pattern) {
  std::string out;
  while (!pattern.empty()) {
    const std::size_t length = pattern.starts_with('\\') ? std::min<std::size_t>(2, pattern.size()) : 1;
    const std::string_view escape = pattern.substr(0, length);
    pattern.remove_prefix(length);
    const std::size_t end = pattern.find('}');
    if (escape == "\\r") {
      out += '\r';
    } else if (escape == "\\n") {
      out += '\n';
    } else if (std::uint32_t letter = 0;
               escape == "\\x" && pattern.starts_with('{') && end != pattern.npos &&
               std::from_chars(pattern.data() + 1, pattern.data() + end, letter, 16).ptr ==
                   pattern.data() + end &&
               letter >= 0x80 && letter < 0x110000) {
      append_utf8(out, letter);
      pattern.remove_prefix(end + 1);
    } else {
      out += escape;
    }
  }
  return out;
}

// The pattern by which a stage cuts, if it keeps all that it cuts.
std::optional<std::string> pattern_of(const Json& stage) {
  if (type_in(stage) == "Digits")
    return flag_in(stage, "individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)";
  if (type_in(stage) != "Split" || JsonObject(stage, "stage").string_or("behavior", "") != "Isolated" ||
      flag_in(stage, "invert", false))
    return std::nullopt;
  const Json& pattern = stage.at("pattern");
  if (!pattern.contains("Regex")) return std::nullopt;
  return pattern["Regex"].get<std::string>();
}

// `loosely`: numbers may be cut one by one or stay together.
bool same_patterns(std::span<const std::string_view> row, const std::vector<std::string>& patterns,
                   bool loosely) {
  return std::ranges::equal(row, patterns, [loosely](std::string_view of_row, std::string_view own) {
    const auto numbers = [](std::string_view pattern) {
      return pattern == R"(\p{N})" || pattern == R"(\p{N}+)";
    };
    return respelled(of_row) == respelled(own) || (loosely && numbers(of_row) && numbers(own));
  });
}

// The row that describes the tokenizer best; null if none has its patterns.
const GgufPatterns* find_row(const TokenizerContents& contents, const std::vector<std::string>& patterns,
                             bool nfc) {
  const GgufPatterns* found = nullptr;
  for (const bool loosely : {false, true}) {
    for (const GgufPatterns& row : gguf_patterns()) {
      if (!same_patterns(row.patterns, patterns, loosely)) continue;
      if (loosely && joins_numbers(contents)) return found;
      if (row.nfc == nfc && row.ignore_merges == contents.ignore_merges) return &row;
      found = &row;
    }
  }
  return found;
}

std::string shown(const std::vector<Json>& stages) {
  std::string text;
  for (const Json& stage : stages)
    text.append(text.empty() ? "" : ", ").append(stage.dump(-1, ' ', true, Json::error_handler_t::replace));
  return text.empty() ? "none" : printable(text);
}

bool is_nfc(const std::vector<Json>& normalizers) {
  return !normalizers.empty() &&
         std::ranges::all_of(normalizers, [](const Json& stage) { return type_in(stage) == "NFC"; });
}

std::vector<std::string> patterns_of(const std::vector<Json>& stages, const std::string& place) {
  std::vector<std::string> patterns;
  for (std::size_t i = 0; i + 1 < stages.size(); ++i) {
    std::optional<std::string> pattern = pattern_of(stages[i]);
    if (!pattern)
      refuse_for_gguf("no GGUF file can say how the tokenizer cuts text", place,
                      "stages that cut by a pattern and keep all", shown({stages[i]}));
    patterns.push_back(std::move(*pattern));
  }
  if (flag_in(stages.back(), "add_prefix_space", true))
    refuse_for_gguf("no GGUF file can say that a text begins with a blank", place + ".add_prefix_space",
                    "false", "true");
  if (flag_in(stages.back(), "use_regex", true)) patterns.emplace_back(kGpt2Pattern);
  return patterns;
}

}  // namespace

void refuse_for_gguf(std::string_view message, const std::string& place, std::string_view expected,
                     std::string_view found) {
  throw Error(ErrorKind::kUnsupported, message)
      .in(place)
      .expected(expected)
      .found(found)
      .fix("leave " + Setting::kFormat + " out: a directory keeps the tokenizer as it is; or leave " +
           Setting::kTokenizer + " out: prompts are token ids");
}

bool is_byte_level(const TokenizerContents& contents) {
  if (contents.kind != TokenizerContents::Kind::kBpe) return false;
  const std::vector<Json> stages = stages_in(contents.components, "pre_tokenizer", "pretokenizers");
  return !stages.empty() && type_in(stages.back()) == "ByteLevel";
}

GgufCut gguf_cut_of(const TokenizerContents& contents, const std::string& place) {
  const std::vector<Json> normalizers = stages_in(contents.components, "normalizer", "normalizers");
  const std::vector<Json> decoders = stages_in(contents.components, "decoder", "decoders");
  const bool nfc = is_nfc(normalizers);
  if (!nfc && !normalizers.empty())
    refuse_for_gguf("no GGUF file can say how the tokenizer normalises text", place + ": normalizer",
                    "NFC, or none", shown(normalizers));
  if (decoders.size() != 1 || type_in(decoders[0]) != "ByteLevel")
    refuse_for_gguf("no GGUF file can say how the tokenizer decodes", place + ": decoder", "ByteLevel",
                    shown(decoders));
  const std::string cutter = place + ": pre_tokenizer";
  const std::vector<Json> stages = stages_in(contents.components, "pre_tokenizer", "pretokenizers");
  const std::vector<std::string> patterns = patterns_of(stages, cutter);
  const GgufPatterns* const row = find_row(contents, patterns, nfc);
  if (row == nullptr)
    refuse_for_gguf("no GGUF file can say how the tokenizer cuts text", cutter,
                    "patterns that docs/formats.md lists", shown(stages));
  if (row->nfc == nfc && row->ignore_merges == contents.ignore_merges) return {row->names.front(), nfc};
  refuse_for_gguf("no GGUF file can say all of this tokenizer", place,
                  "patterns that are listed in docs/formats.md with this normalizer and ignore_merges",
                  std::string(nfc ? "NFC" : "no normalizer") + ", ignore_merges " +
                      (contents.ignore_merges ? "true" : "false"));
}

}  // namespace sluice::tokenizer
