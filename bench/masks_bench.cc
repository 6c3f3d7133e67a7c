// sluice_bench_masks TOKENIZER …
// What it costs to bind an answer to a form: for each tokenizer (as load_tokenizer takes it) the tree of its
// vocabulary, then answers of several schemas, drawn evenly among what is allowed: the time of masks that are
// made, of steps whose mask is there, and of taking a token. Ends of strings and lists are preferred, so that
// answers end.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/grammar/answer_guide.h"
#include "engine/grammar/json_parts.h"
#include "engine/grammar/schema_grammar.h"

namespace sluice {
namespace {

using engine::SchemaValue;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMemory = std::size_t{12} << 20;  // as a server of a large budget has it
constexpr int kAnswers = 40, kMostTokens = 400;

SchemaValue typed(const char* type) {
  SchemaValue schema = SchemaValue::object();
  schema.set("type", SchemaValue::of_text(type));
  return schema;
}

SchemaValue with(SchemaValue schema, const char* key, SchemaValue value) {
  schema.set(key, std::move(value));
  return schema;
}

// A record of a few fields with lists, lengths and bounds.
SchemaValue record() {
  SchemaValue properties = SchemaValue::object();
  properties.set("name", with(typed("string"), "maxLength", SchemaValue::of_integer(40)));
  properties.set("summary", typed("string"));
  properties.set("age", with(typed("integer"), "maximum", SchemaValue::of_integer(150)));
  properties.set("tags", with(typed("array"), "items", typed("string")));
  properties.set("date", with(typed("string"), "format", SchemaValue::of_text("date")));
  SchemaValue required = SchemaValue::array();
  for (const auto& [name, schema] : properties.members)
    required.elements.push_back(SchemaValue::of_text(name));
  SchemaValue schema = with(typed("object"), "properties", std::move(properties));
  schema.set("required", std::move(required));
  return with(std::move(schema), "additionalProperties", SchemaValue::of(false));
}

std::shared_ptr<const engine::Grammar> grammar_of(const SchemaValue& schema) {
  engine::GrammarBuilder builder;
  engine::JsonParts parts(builder);
  engine::SchemaGrammar grammar(builder, parts, schema, "schema", false);
  return std::make_shared<const engine::Grammar>(builder.build(grammar.whole()));
}

struct Times {
  std::vector<double> us;
  void add(Clock::duration time) { us.push_back(std::chrono::duration<double, std::micro>(time).count()); }
  double at(double share) {
    if (us.empty()) return 0;
    std::ranges::sort(us);
    return us[std::min(us.size() - 1, static_cast<std::size_t>(share * static_cast<double>(us.size())))];
  }
};

tokenizer::TokenId pick(std::mt19937_64& random, std::span<const std::uint64_t> bits, std::size_t vocabulary,
                        engine::GrammarMasks& masks) {
  tokenizer::TokenId last = 0;
  std::uniform_int_distribution<std::size_t> draw(0, vocabulary - 1);
  for (int tries = 0, found = 0; tries < 20'000 && found < 8; ++tries) {
    const std::size_t id = draw(random);
    if (!engine::has_bit(bits, id)) continue;
    ++found;
    last = static_cast<tokenizer::TokenId>(id);
    if (masks.bytes_of(last).find_first_of("\"]}") != std::string::npos) return last;
  }
  if (last != 0) return last;
  for (std::size_t id = 0; id < vocabulary; ++id)
    if (engine::has_bit(bits, id)) return static_cast<tokenizer::TokenId>(id);
  return last;
}

void measure(const std::string& name, const SchemaValue& schema, engine::GrammarMasks& masks) {
  const auto grammar = grammar_of(schema);
  std::mt19937_64 random(1);
  Times made, found, taken;
  for (int answer = 0; answer < kAnswers; ++answer) {
    engine::AnswerGuide guide(grammar, masks);
    for (int token = 0; token < kMostTokens && !guide.complete(); ++token) {
      const std::uint64_t misses = masks.counts().misses;
      const Clock::time_point begin = Clock::now();
      const std::span<const std::uint64_t> bits = guide.allowed();
      (masks.counts().misses > misses ? made : found).add(Clock::now() - begin);
      const tokenizer::TokenId id = pick(random, bits, masks.trie().vocabulary(), masks);
      const Clock::time_point before = Clock::now();
      guide.accept(id);
      taken.add(Clock::now() - before);
    }
  }
  double all = 0;
  for (const Times* times : {&made, &found, &taken})
    for (const double us : times->us) all += us;
  const std::size_t tokens = taken.us.size();
  fmt::print(
      "  {:<8} {:>6} tokens, {:>5} masks made: median {:>7.1f} us, p99 {:>8.1f}; there: median {:>5.1f}, p99 "
      "{:>5.1f}; token taken: {:>4.1f}; mean of all {:>6.1f} us a token\n",
      name, tokens, made.us.size(), made.at(.5), made.at(.99), found.at(.5), found.at(.99), taken.at(.5),
      all / static_cast<double>(std::max<std::size_t>(1, tokens)));
}

void measure(const std::string& path) {
  const auto tokenizer = tokenizer::load_tokenizer(path);
  const Clock::time_point begin = Clock::now();
  engine::GrammarMasks masks(*tokenizer, kMemory);
  fmt::print("{}: {} tokens, tree {:.1f} MiB, made in {:.0f} ms\n", path, masks.trie().vocabulary(),
             static_cast<double>(masks.trie().bytes()) / (1 << 20),
             std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  measure("object", typed("object"), masks);
  measure("record", record(), masks);
}

}  // namespace
}  // namespace sluice

int main(int count, char** words) {
  try {
    for (int i = 1; i < count; ++i) sluice::measure(words[i]);
  } catch (const sluice::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
