// Schemas and texts as the package jsonschema judges them (tools/oracle/make_schema_golden.py).
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "engine/grammar/schema_testing.h"

namespace sluice::engine {
namespace {

using testing::Random;

std::vector<Json> golden_schemas() {
  std::ifstream file(SLUICE_SOURCE_DIR "/tests/golden/schemas/schemas.jsonl");
  std::vector<Json> rows;
  for (std::string line; std::getline(file, line);) rows.push_back(Json::parse(line));
  return rows;
}

// A text that the grammar takes, drawn byte by byte; empty where it does not end in time. What could go on
// ends all the sooner the longer it is.
std::string random_walk(const Grammar& grammar, Random& random) {
  constexpr std::size_t kLongest = 2000;
  GrammarMachine machine(grammar);
  std::string text;
  for (GrammarMachine::Set set = machine.start(); text.size() < kLongest;) {
    const bool goes_on = machine.goes_on(set);
    if (machine.may_end(set) && (!goes_on || testing::coin(random, 3))) return text;
    if (!goes_on) return "";
    // Bytes that end a value come more often than others, or strings would have no end.
    std::vector<std::uint8_t> bytes;
    for (int byte = 0; byte < 256; ++byte)
      if (machine.step(set, static_cast<std::uint8_t>(byte)) != GrammarMachine::kDead)
        bytes.push_back(static_cast<std::uint8_t>(byte));
    if (bytes.empty()) return "";
    std::vector<std::uint8_t> ends;
    for (const std::uint8_t byte : bytes)
      if (byte == '"' || byte == ']' || byte == '}') ends.push_back(byte);
    const bool end = !ends.empty() && (text.size() > kLongest / 4 || testing::coin(random, 4));
    const std::vector<std::uint8_t>& from = end ? ends : bytes;
    const std::uint8_t byte = from[testing::below(random, from.size())];
    text += static_cast<char>(byte);
    set = machine.step(set, byte);
  }
  return "";
}

TEST(SchemaOracle, GrammarsTakeWhatThePackageTakes) {
  const std::vector<Json> rows = golden_schemas();
  ASSERT_EQ(rows.size(), 200u);
  std::size_t yes = 0, no = 0;
  for (const Json& row : rows) {
    bool left_out = false;
    const std::shared_ptr<const Grammar> grammar = testing::grammar_of(row["schema"], true, &left_out);
    EXPECT_FALSE(left_out);
    for (const Json& text : row["yes"]) {
      EXPECT_TRUE(testing::accepts(*grammar, text.get<std::string>())) << row["schema"].dump() << "\n"
                                                                       << text.dump();
      ++yes;
    }
    for (const Json& text : row["no"]) {
      EXPECT_FALSE(testing::accepts(*grammar, text.get<std::string>())) << row["schema"].dump() << "\n"
                                                                        << text.dump();
      ++no;
    }
  }
  EXPECT_GT(yes, 400u);
  EXPECT_GT(no, 600u);
}

// With SLUICE_SCHEMA_WALKS=FILE they are many, and the program that made the schemas judges them.
TEST(SchemaOracle, WalksFit) {
  const char* const path = std::getenv("SLUICE_SCHEMA_WALKS");
  const std::size_t walks = path != nullptr ? 1000 : 10;
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  Random random(seed);
  std::ofstream file;
  if (path != nullptr) file.open(path);
  std::size_t ended = 0, drawn = 0;
  for (const Json& row : golden_schemas()) {
    const Json& schema = row["schema"];
    const std::shared_ptr<const Grammar> grammar = testing::grammar_of(schema, true);
    Json texts = Json::array();
    for (std::size_t i = 0; i < walks; ++i, ++drawn) {
      const std::string text = random_walk(*grammar, random);
      if (text.empty()) continue;
      ++ended;
      EXPECT_TRUE(testing::accepts(*grammar, text));
      if (path != nullptr) texts.push_back(text);
    }
    if (path != nullptr) file << Json::object({{"schema", schema}, {"texts", texts}}).dump() << '\n';
    if (HasFailure()) break;
  }
  EXPECT_GT(ended, drawn / 2);
}

}  // namespace
}  // namespace sluice::engine
