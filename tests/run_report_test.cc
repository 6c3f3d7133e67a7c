// Figures that `run` reports, as JSON, as a table, and beside the text on a terminal.
#include <gtest/gtest.h>

#include <cstddef>
#include <iterator>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "packed_model.h"
#include "terminal.h"

namespace run_report_test {
namespace {

using sluice::Json;
using sluice::program::content_of;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::PackedModelTest;
using sluice::program::run;
using sluice::program::run_json;
using sluice::program::run_on_terminal;
using sluice::program::Screen;
using sluice::program::ScreenOf;

class RunReport : public PackedModelTest {};

TEST_F(RunReport, CountsOfTheReportFitTogether) {
  const Json result = run_json("run " + store() + " -p 'Once upon a time' -n 20 --temp 0 --memory " +
                               memory(24) + " --ignore-eos");
  const Json& experts = result["experts"];
  EXPECT_EQ(experts["hits"].get<int>() + experts["misses"].get<int>(), experts["accesses"].get<int>());
  EXPECT_EQ(experts["prefill"]["accesses"].get<int>() + experts["decode"]["accesses"].get<int>(),
            experts["accesses"].get<int>());
  EXPECT_EQ(experts["decode"]["accesses"].get<int>(), 19 * 6 * 4);
  EXPECT_EQ(experts["decode"]["tokens"], 19);
  EXPECT_GE(result["io"]["bytes_read"].get<long>(), experts["bytes_read"].get<long>());
  long by_name = 0;
  for (const auto& [name, bytes] : result["memory"]["by_name"].items()) by_name += bytes.get<long>();
  EXPECT_GE(by_name, result["memory"]["accounted"].get<long>());
  for (const char* field :
       {"load_s", "prefill_s", "decode_s", "prefill_tok_s", "decode_tok_s", "first_token_s"})
    EXPECT_GE(result["timing"][field].get<double>(), 0.0) << field;
  EXPECT_EQ(result["experts"]["prefill"]["tokens"], result["prompt_tokens"].size());
  const Json& start = result["start"];
  double stages = 0;
  for (const char* stage : {"open_s", "tokenizer_s", "prompt_s", "plan_s", "dense_s", "profile_s"})
    stages += start[stage].get<double>();
  EXPECT_GT(stages, 0.0);
  EXPECT_LE(stages, start["load_s"].get<double>());
}

// Without tokens there is no speed and no prediction.
TEST_F(RunReport, WithoutTokensThereAreNoRatesAndNoPredictions) {
  const std::string request = "run " + store() + " --memory " + memory(24) + " --temp 0";
  const auto expect_no_rates = [](const Json& result) {
    EXPECT_FALSE(result["timing"].contains("decode_tok_s")) << result["timing"];
    EXPECT_FALSE(result.contains("predicted")) << result["predicted"];
    for (const char* part : {"timing", "memory", "io", "experts"})
      EXPECT_EQ(result[part].dump().find("null"), std::string::npos) << result[part];
  };
  const Json none = run_json(request + " -p Once -n 0");
  EXPECT_EQ(none["tokens"].size(), 0u);
  EXPECT_EQ(none["stop_reason"], "length");
  EXPECT_FALSE(none["timing"].contains("prefill_tok_s")) << none["timing"];
  EXPECT_FALSE(none["timing"].contains("first_token_s")) << none["timing"];
  expect_no_rates(none);
  const Json one = run_json(request + " -p Once -n 1");  // comes with the prompt
  EXPECT_GT(one["timing"]["prefill_tok_s"], 0);
  EXPECT_GT(one["timing"]["first_token_s"], 0);
  expect_no_rates(one);

  for (const std::string count : {"0", "1", "2"}) {
    const std::string table = run(request + " -p Once -n " + count).err;
    EXPECT_NE(table.find("generated         " + count + (count == "1" ? " token in" : " tokens")),
              std::string::npos)
        << table;
    EXPECT_EQ(table.find("predicted") != std::string::npos, count == "2") << table;
    EXPECT_EQ(table.find("while decoding") != std::string::npos, count == "2") << table;
    EXPECT_EQ(table.find("first token") != std::string::npos, count != "0") << table;
    for (const char* wrong : {"nan", "inf", " 0.0 tok/s", " 0.00 tok/s"})
      EXPECT_EQ(table.find(wrong), std::string::npos) << wrong << "\n" << table;
  }
}

// A copy of the weights that other processes have read is in the page cache, and no page is ours.
TEST_F(RunReport, ThePageCacheIsCountedOnlyWhereReadsGoThroughIt) {
  content_of(store() + "/experts-00000.bin");
  for (const std::string io : {"direct", "buffered", "mmap"}) {
    const Json result = run_json("run " + store() + " -p Once -n 2 --memory " + memory(24) + " --io " + io);
    EXPECT_EQ(result["io"].contains("page_cache_bytes"), io != "direct") << io << " " << result["io"];
  }
}

TEST_F(RunReport, StatusFitsTheTerminalAndSimpleTerminalsGetPlainText) {
  const std::vector<std::string> words = {"run",    store(), "-p", "The old king", "-n", "6",
                                          "--temp", "0",     "-q"};
  const std::optional<Outcome> shown = run_on_terminal(words);
  if (!shown) GTEST_SKIP() << "PSEUDO-TERMINALS CANNOT BE MADE HERE: what a terminal shows is not checked";
  const std::string& drawn = shown->out;
  EXPECT_EQ(shown->code, 0) << drawn;
  std::size_t lines = 0;
  for (std::size_t at = drawn.find("MiB:"); at != std::string::npos; at = drawn.find("MiB:", at + 1)) {
    const std::string line = drawn.substr(at, drawn.find('\x1b', at) - at);
    const bool left_out = line.ends_with(" …");
    EXPECT_LE(line.size(), left_out ? 79u + 2 : 79u) << line;
    EXPECT_TRUE(left_out || line.find(" tables ") != std::string::npos) << line;
    ++lines;
  }
  EXPECT_GT(lines, 0u) << drawn;

  const std::string plain = run_on_terminal(words, "dumb").value().out;
  EXPECT_EQ(plain.find('\x1b'), std::string::npos) << plain;
  EXPECT_EQ(plain.find("MiB:"), std::string::npos) << plain;
}

// Words of the text that comes as it is made are not cut at the edge, and none is lost or shown twice.
TEST_F(RunReport, ATerminalShowsTheTextInLinesThatEndBetweenWords) {
  const std::string prompt = "The old king looked at his daughter and said";
  const std::vector<std::string> words = {"run",    store(), "-p",     prompt, "-n", "120",
                                          "--seed", "7",     "--temp", "0.8",  "-q"};
  const Outcome plain = run("run " + store() + " -p '" + prompt + "' -n 120 --seed 7 --temp 0.8 -q");
  ASSERT_EQ(plain.code, 0) << plain.err;
  const auto in_words = [](const std::string& text) {
    std::istringstream in(text);
    return std::vector<std::string>(std::istream_iterator<std::string>(in), {});
  };
  for (const char* const kind : {"xterm", "dumb"})
    for (const unsigned short columns : {20, 33, 50, 80}) {
      SCOPED_TRACE(kind + std::string(", columns ") + std::to_string(columns));
      const std::optional<Outcome> shown = run_on_terminal(words, kind, columns);
      if (!shown)
        GTEST_SKIP() << "PSEUDO-TERMINALS CANNOT BE MADE HERE: what a terminal shows is not checked";
      const bool moves = kind == std::string("xterm");  // the prompt stands there, too
      const Screen screen = ScreenOf(shown->out, columns).screen();
      EXPECT_EQ(screen.broken, 0u) << screen.text();
      EXPECT_EQ(in_words(screen.text()), in_words((moves ? prompt : "") + plain.out)) << screen.text();
      EXPECT_GT(screen.lines.size(), 300u / columns);
      EXPECT_EQ(shown->out.find('\x1b') != std::string::npos, moves);
    }
}

// Figures that have no room are left out, the less important ones first; none is cut.
TEST_F(RunReport, ANarrowTerminalShowsWholeFigures) {
  const std::regex whole(
      R"(\d+\.\d tok/s( \| hits \d+ %)?( \| disk \d+\.\d\d GB/s)?( \| [\d.]+ [KMG]iB of [\d.]+ [KMG]iB)?)");
  for (const unsigned short columns : {30, 50, 80}) {
    const std::optional<Outcome> shown = run_on_terminal(
        {"run", store(), "-p", "The old king", "-n", "6", "--temp", "0", "-q"}, "xterm", columns);
    if (!shown) GTEST_SKIP() << "PSEUDO-TERMINALS CANNOT BE MADE HERE: what a terminal shows is not checked";
    std::size_t lines = 0;
    const std::string& drawn = shown->out;
    for (std::size_t at = drawn.find(" tok/s"); at != std::string::npos; at = drawn.find(" tok/s", at + 1)) {
      const std::size_t begin = drawn.rfind('\n', at) + 1;
      const std::string line = drawn.substr(begin, drawn.find('\r', begin) - begin);
      EXPECT_TRUE(std::regex_match(line, whole)) << columns << ": " << line;
      EXPECT_LT(line.size(), columns);
      ++lines;
    }
    EXPECT_GT(lines, 0u) << drawn;
  }
}

}  // namespace
}  // namespace run_report_test
