// Any text as a JSON schema; behind a zero byte, a text that its grammar may take, and bytes that lead a walk
// through it. Whatever the grammar takes is JSON.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json/json.h"
#include "engine/grammar/schema_testing.h"

namespace {

using namespace sluice;
using namespace sluice::engine;

// By a reader that takes a key twice, which a grammar of free keys cannot know, and numbers of any size.
bool is_json(const std::string& text) {
  try {
    (void)nlohmann::json::parse(text);
  } catch (const nlohmann::json::out_of_range&) {
    return true;  // a number that no double holds
  } catch (const nlohmann::json::parse_error&) {
    return false;
  }
  return true;
}

void walk(const Grammar& grammar, std::string_view choices) {
  GrammarMachine machine(grammar);
  GrammarMachine::Set set = machine.start();
  std::string text;
  for (const char choice : choices) {
    // The next byte that goes on, from the one that is asked for.
    int tried = 0;
    auto byte = static_cast<std::uint8_t>(choice);
    GrammarMachine::Set next = machine.step(set, byte);
    while (next == GrammarMachine::kDead && ++tried < 256) next = machine.step(set, ++byte);
    if (next == GrammarMachine::kDead) {
      SLUICE_CHECK(machine.may_end(set) || !machine.goes_on(set), "a way goes on, and no byte does");
      return;
    }
    text += static_cast<char>(byte);
    set = next;
    SLUICE_CHECK(!machine.may_end(set) || is_json(text), "what a grammar takes is no JSON: " + text);
  }
}

void try_schema(std::string_view schema, std::string_view text) {
  Json json;
  try {
    json = parse_json(schema, "schema");
  } catch (const Error&) {
    return;
  }
  std::shared_ptr<const Grammar> grammar;
  try {
    grammar = testing::grammar_of(json, !text.empty() && text.front() == 's');
  } catch (const Error& error) {
    SLUICE_CHECK(error.kind() == ErrorKind::kInvalid && !error.where().empty(), error.what());
    return;
  }
  const std::string whole(text);
  SLUICE_CHECK(!testing::accepts(*grammar, whole) || is_json(whole), "what a grammar takes is no JSON");
  walk(*grammar, text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\0'), input.size());
  try_schema(input.substr(0, end), input.substr(std::min(end + 1, input.size())).substr(0, 512));
  return 0;
}
