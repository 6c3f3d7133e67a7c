// Runs the bundled model with the built program: quality, reproducibility, reports, and behaviour when
// something goes wrong.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/files/scratch_directory.h"
#include "base/hash.h"
#include "base/json/json.h"
#include "bundled_model.h"
#include "terminal.h"

namespace {

namespace fs = std::filesystem;
using sluice::Json;
using sluice::read_json_file;
using sluice::program::kModel;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::run;
using sluice::program::run_json;
using sluice::program::run_on_terminal;
using sluice::testing::ScratchDirectory;

// A directory of its own with a store of the bundled model.
class RunTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_.emplace();
    ASSERT_EQ(run("pack " + kModel + " -o " + store() + " --quiet").code, 0);
  }
  static void TearDownTestSuite() { directory_.reset(); }
  static std::string store() { return directory_->file("fable.sluice"); }
  static std::string file(const std::string& name) { return directory_->file(name); }
  static inline std::optional<ScratchDirectory> directory_;
};

// models/fable-moe-18m/README.md states what Hugging Face transformers computed in fp32.
TEST_F(RunTest, PerplexityOfTheBundledModelIsTheOneItsReadmeStates) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the whole text took more than ten minutes under ThreadSanitizer; other tests run the same "
                  "code on less";
#endif
  for (const std::string math : {"f32", "auto"}) {
    const Json result = run_json("eval " + store() + " -f " + kModel + "/eval.txt --memory " + memory(64) +
                                 " --math " + math);
    EXPECT_NEAR(result["perplexity"].get<double>(), 46.788, 0.001 * 46.788) << math;
    EXPECT_EQ(result["predicted"], 46197);
    EXPECT_NEAR(result["bits_per_byte"].get<double>(), 1.44838, 0.0015);
    EXPECT_NEAR(result["nll"].get<double>() / 46197, 3.84563, 0.001);
  }
}

TEST_F(RunTest, LogitsOfTheBundledModelEqualTheOracle) {
  const Json golden = read_json_file(SLUICE_SOURCE_DIR "/tests/golden/fable/golden.json");
  std::string tokens;
  for (const Json& token : golden["tokens"])
    tokens += (tokens.empty() ? "" : ",") + std::to_string(token.get<int>());
  ASSERT_EQ(run("forward " + store() + " --tokens " + tokens + " --math f32 --memory " + memory(40) +
                " --out " + file("logits.npy"))
                .code,
            0);
  std::ifstream npy(file("logits.npy"), std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(npy), {});
  const std::size_t header =
      10 + static_cast<unsigned char>(bytes[8]) + 256 * static_cast<unsigned char>(bytes[9]);
  EXPECT_EQ(header % 64, 0u);
  const std::size_t vocab = 6400, rows = golden["tokens"].size();
  ASSERT_EQ(bytes.size(), header + rows * vocab * sizeof(float));
  std::vector<float> logits(rows * vocab);
  std::memcpy(logits.data(), bytes.data() + header, logits.size() * sizeof(float));
  const double tolerance = 1e-4 * golden["max_abs_logit"].get<double>();
  for (std::size_t t = 0; t < rows; ++t)
    for (const Json& pair : golden["top"][t])
      EXPECT_NEAR(logits[t * vocab + pair[0].get<std::size_t>()], pair[1].get<double>(), tolerance)
          << "position " << t;
}

TEST_F(RunTest, BudgetCacheThreadsAndFormatNeverShowInTheText) {
  const std::string request = " -p 'The old king' -n 40 --seed 3 --temp 0.8";
  const Json expected = run_json("run " + kModel + request);
  EXPECT_EQ(expected["tokens"].size(), 40u);
  for (const std::string& other :
       {store() + " --memory " + memory(22), store() + " --memory " + memory(32) + " --cache lfu --threads 1",
        kModel + " --memory " + memory(24) + " --cache none",
        store() + " --memory " + memory(28) + " --keep packed --cache fifo --cache-scope layer",
        store() + " --io mmap --memory " + memory(32), store() + " --io buffered --disk pread --chunk 3"}) {
    const Json found = run_json("run " + other + request);
    EXPECT_EQ(found["tokens"], expected["tokens"]) << other;
    EXPECT_EQ(found["text"], expected["text"]) << other;
    EXPECT_LE(found["memory"][sluice::program::kPeak], found["memory"]["budget"]) << other;
  }
}

TEST_F(RunTest, WithoutRoundingNoInstructionSetShowsInTheText) {
  const std::string request = " -p 'The old king' -n 40 --seed 3 --temp 0.8 --math f32";
  const Json expected = run_json("run " + kModel + request);
  const Json found = run_json("run " + store() + " --chunk 3 --isa scalar" + request);
  EXPECT_EQ(found["tokens"], expected["tokens"]);
  EXPECT_EQ(found["text"], expected["text"]);
}

TEST_F(RunTest, TheTokenizerInAStoreNeedsNoFilesBesideIt) {
  const std::string copy = file("compiled.sluice");
  fs::copy(store(), copy, fs::copy_options::recursive);
  const std::string command =
      "run " + copy + " -p 'Once upon a time' -n 8 --temp 0 -q --memory " + memory(40) + " --ignore-eos";
  const std::string text = run(command).out;
  EXPECT_GT(text.size(), 8u);
  const auto flip = [&](const std::string& name) {
    std::fstream bytes(copy + name, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekg(5000);
    const char byte = static_cast<char>(bytes.get() ^ 1);
    bytes.seekp(5000);
    bytes.put(byte);
  };
  flip("/files/tokenizer.json");
  EXPECT_EQ(run(command).out, text);
  flip("/sidecar/tokenizer.bin");
  Outcome outcome = run(command);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("files/tokenizer.json"), std::string::npos) << outcome.err;
  fs::remove(copy + "/sidecar/tokenizer.bin");
  outcome = run(command);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("files/tokenizer.json"), std::string::npos) << outcome.err;
  flip("/files/tokenizer.json");
  EXPECT_EQ(run(command).out, text);
  fs::remove_all(copy);
}

TEST_F(RunTest, ADamagedTokenizerInAStoreIsReplacedByItsFiles) {
  const std::string copy = file("damaged.sluice"), sidecar = copy + "/sidecar/tokenizer.bin";
  fs::copy(store(), copy, fs::copy_options::recursive);
  const std::string request = "tokenize " + copy + " -p 'Once upon a time'";
  const std::string ids = run(request).out;
  std::ifstream in(sidecar, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  std::string flipped = good, malformed = good;
  flipped[5000] ^= 1;
  malformed[0] = 'X';
  for (const std::string& damaged : {flipped, malformed, good.substr(0, 100), std::string()}) {
    std::ofstream(sidecar, std::ios::binary) << damaged;
    const Outcome outcome = run(request);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, ids);
    EXPECT_TRUE(outcome.err.starts_with("sluice: warning: the tokenizer is read from the model's files: "));
    EXPECT_NE(outcome.err.find("sidecar/tokenizer.bin at byte"), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(run(request + " -q").err, "");
  }
  // Also in a run, whose text is the same.
  const std::string command = " -p 'Once upon a time' -n 8 --temp 0 --memory " + memory(40) + " --ignore-eos";
  const Outcome outcome = run("run " + copy + command);
  EXPECT_EQ(outcome.out, run("run " + store() + command).out);
  EXPECT_NE(outcome.err.find("warning: the tokenizer is read"), std::string::npos) << outcome.err;
  fs::remove_all(copy);
}

// The bytes of a sidecar of tables, with its checksums made right again (docs/store-format.md, section 5.1).
std::string with_checksums(std::string file) {
  const auto read = [&](std::size_t at, auto number) {
    std::memcpy(&number, file.data() + at, sizeof number);
    return number;
  };
  const auto put_sum = [&](std::size_t at, std::size_t begin, std::size_t size) {
    const std::uint64_t sum = sluice::xxh3(std::as_bytes(std::span(file)).subspan(begin, size));
    std::memcpy(file.data() + at, &sum, sizeof sum);
  };
  std::size_t end = 48;
  for (auto tables = read(12, std::uint32_t{}); tables > 0; --tables, end += 40)
    put_sum(end + 32, read(end + 16, std::uint64_t{}), read(end + 24, std::uint64_t{}));
  put_sum(end, 0, end);
  return file;
}

// A later program may write another layout or version, or components that this one does not know.
TEST_F(RunTest, ACompiledTokenizerOfAnotherVersionIsReplacedByItsFiles) {
  const std::string copy = file("later.sluice"), sidecar = copy + "/sidecar/tokenizer.bin";
  fs::copy(store(), copy, fs::copy_options::recursive);
  const std::string request = "tokenize " + copy + " -p 'Once upon a time'";
  const std::string ids = run(request).out;
  const std::string good = sluice::program::content_of(sidecar);
  ASSERT_EQ(with_checksums(good), good);
  std::string layout = good, version = good, component = good;
  ++layout[8];
  ++version[40];
  component.replace(component.find("NFC"), 3, "NFX");
  for (const std::string& other : {layout, with_checksums(version), with_checksums(component)}) {
    std::ofstream(sidecar, std::ios::binary) << other;
    const Outcome outcome = run(request);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, ids);
    EXPECT_TRUE(outcome.err.starts_with("sluice: warning: the tokenizer is read from the model's files: "))
        << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(run(request + " -q").err, "");
  }
}

// A link to itself is to root, too, what a file without permission is to others.
TEST_F(RunTest, ACompiledTokenizerThatCannotBeReadIsReplacedByItsFiles) {
  const std::string copy = file("unreadable.sluice"), sidecar = copy + "/sidecar/tokenizer.bin";
  fs::copy(store(), copy, fs::copy_options::recursive);
  const std::string request = "tokenize " + copy + " -p 'Once upon a time'";
  const std::string ids = run(request).out;
  for (const std::string made : {"mkfifo ", "mkdir ", "ln -s tokenizer.bin "}) {
    fs::remove(sidecar);
    ASSERT_EQ(std::system((made + sidecar).c_str()), 0);
    const Outcome outcome = run(request);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, ids);
    EXPECT_TRUE(
        outcome.err.starts_with("sluice: warning: the tokenizer is read from the model's files: " + sidecar))
        << outcome.err;
  }
}

TEST_F(RunTest, CountsOfTheReportFitTogether) {
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

#if defined(__x86_64__)
// Containers often forbid io_uring with a seccomp filter; this one answers EPERM to io_uring_setup (425).
int run_without_io_uring(const std::vector<std::string>& arguments, const std::string& out) {
  const pid_t child = ::fork();
  if (child == 0) {
    sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 425, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    sock_fprog program{sizeof(code) / sizeof(code[0]), code};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
      ::_exit(125);
    if (std::freopen(out.c_str(), "w", stdout) == nullptr) ::_exit(126);
    sluice::program::become_program(arguments);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(RunTest, WhereIoUringIsForbiddenThreadsRead) {
  const Json expected =
      run_json("run " + store() + " -p 'The old king' -n 20 --temp 0 --memory " + memory(28));
  const std::string out = file("without_io_uring.json");
  ASSERT_EQ(run_without_io_uring({"run", store(), "-p", "The old king", "-n", "20", "--temp", "0", "--memory",
                                  memory(28), "--json"},
                                 out),
            0);
  const Json found = read_json_file(out);
  EXPECT_EQ(found["io"]["method"], "pread");
  EXPECT_EQ(found["tokens"], expected["tokens"]);
  EXPECT_EQ(
      run_without_io_uring({"run", store(), "-p", "x", "-n", "1", "--disk", "io_uring", "--quiet"}, out), 1);
}
#endif

// Without tokens there is no speed and no prediction.
TEST_F(RunTest, WithoutTokensThereAreNoRatesAndNoPredictions) {
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
    EXPECT_NE(table.find("generated         " + count + " tokens"), std::string::npos) << table;
    EXPECT_EQ(table.find("predicted") != std::string::npos, count == "2") << table;
    EXPECT_EQ(table.find("while decoding") != std::string::npos, count == "2") << table;
    EXPECT_EQ(table.find("first token") != std::string::npos, count != "0") << table;
    for (const char* wrong : {"nan", "inf", " 0.0 tok/s", " 0.00 tok/s"})
      EXPECT_EQ(table.find(wrong), std::string::npos) << wrong << "\n" << table;
  }
}

// A copy of the weights that other processes have read is in the page cache, and no page is ours.
TEST_F(RunTest, ThePageCacheIsCountedOnlyWhereReadsGoThroughIt) {
  sluice::program::content_of(store() + "/experts-00000.bin");
  for (const std::string io : {"direct", "buffered", "mmap"}) {
    const Json result = run_json("run " + store() + " -p Once -n 2 --memory " + memory(24) + " --io " + io);
    EXPECT_EQ(result["io"].contains("page_cache_bytes"), io != "direct") << io << " " << result["io"];
  }
}

// The resident set after the start differs by some pages from start to start.
TEST_F(RunTest, TheLeastBudgetThatARefusalStatesWorksEveryTime) {
  for (const std::string& model : {kModel, store()}) {
    const std::string request = "run " + model + " -q -p 'Once upon a time' -n 8 --temp 0 --memory ";
    const std::string refusal = run(request + "1MiB").err;
    const std::size_t at = refusal.find("at least ");
    ASSERT_NE(at, std::string::npos) << refusal;
    const std::size_t begin = at + std::string("at least ").size();
    const std::string least = refusal.substr(begin, refusal.find(' ', begin) - begin);
    for (int i = 0; i < 20; ++i) {
      const Outcome outcome = run(request + least);
      ASSERT_EQ(outcome.code, 0) << model << " " << least << ", time " << i + 1 << "\n" << outcome.err;
    }
  }
}

TEST_F(RunTest, CtrlCEndsAGenerationWithItsStatistics) {
  sluice::program::Running program(
      {"run", store(), "-p", "The old king", "-n", "100000", "--temp", "0", "--ignore-eos"});
  ASSERT_NE(program.read(), "");  // the text has begun
  program.interrupt();
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 130);
  for (const char* row : {"generated", "(interrupted)", "experts", "disk"})
    EXPECT_NE(outcome.out.find(row), std::string::npos) << outcome.out;
}

// One interruption is for all sequences.
TEST_F(RunTest, CtrlCEndsAllSequencesOfABatch) {
  sluice::program::Running program({"run", store(), "-p", "The old king", "-p", "Once", "-p", "A", "-n",
                                    "4000", "--temp", "0", "--ignore-eos", "--json"});
  // The program generates by then, or still loads: the answer is the same.
  std::this_thread::sleep_for(std::chrono::seconds(2));
  program.interrupt();
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 130);
  std::size_t interrupted = 0;
  const std::string reason = "\"stop_reason\":\"interrupted\"";
  for (std::size_t at = 0; (at = outcome.out.find(reason, at)) != std::string::npos; ++at) ++interrupted;
  EXPECT_EQ(interrupted, 3u) << outcome.out;
}

// Figures that do not fit are left out; none is cut.
TEST_F(RunTest, NarrowTerminalsShowWholeFigures) {
  const std::optional<Outcome> shown =
      run_on_terminal({"run", store(), "-p", "The old king", "-n", "6", "--temp", "0", "-q"}, "xterm", 50);
  if (!shown) GTEST_SKIP() << "PSEUDO-TERMINALS CANNOT BE MADE HERE: what a terminal shows is not checked";
  EXPECT_EQ(shown->code, 0) << shown->out;
  const std::regex figures(
      R"([0-9.]+ tok/s( \| (hits [0-9]+ %|disk [0-9.]+ GB/s|[0-9.]+ [KMG]iB of [0-9.]+ [KMG]iB))*)");
  std::size_t lines = 0;
  for (std::size_t at = shown->out.find(" tok/s"); at != std::string::npos;
       at = shown->out.find(" tok/s", at + 1)) {
    const std::size_t begin = shown->out.find_last_not_of("0123456789.", at - 1) + 1;
    const std::string line = shown->out.substr(begin, shown->out.find_first_of("\r\n\x1b", at) - begin);
    EXPECT_LE(line.size(), 50u) << line;
    EXPECT_TRUE(std::regex_match(line, figures)) << line;
    ++lines;
  }
  EXPECT_GT(lines, 0u) << shown->out;
}

TEST_F(RunTest, StatusFitsTheTerminalAndSimpleTerminalsGetPlainText) {
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

// Figures that have no room are left out, the less important ones first; none is cut.
TEST_F(RunTest, ANarrowTerminalShowsWholeFigures) {
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

TEST_F(RunTest, CtrlCBeforeAnyTextPrintsNothing) {
  std::string prompt = "1";
  for (int i = 0; i < 4000; ++i) prompt += ",7";
  sluice::program::Running program({"run", store(), "--tokens", prompt, "-n", "5", "-q", "--threads", "1"});
  program.interrupt();
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(outcome.out, "");
}

// A copy of the bundled model that a test may change.
std::string copy_of_model(const std::string& to) {
  fs::copy(kModel, to, fs::copy_options::recursive);
  return to;
}

void write_json(const std::string& path, const Json& value) {
  std::ofstream stream(path);
  stream << value.dump();
}

TEST_F(RunTest, IdsThatAreNoTokenAreGeneratedAndPrintNothing) {
  const std::string model = copy_of_model(file("padded"));
  Json tokenizer = read_json_file(model + "/tokenizer.json");
  Json& bpe = tokenizer["model"];
  Json vocab = Json::object(), merges = Json::array();
  for (const auto& [token, id] : bpe["vocab"].items())
    if (id < 3000) vocab[token] = id;
  for (const Json& merge : bpe["merges"]) {
    const auto left = merge[0].get<std::string>(), right = merge[1].get<std::string>();
    if (vocab.contains(left) && vocab.contains(right) && vocab.contains(left + right))
      merges.push_back(merge);
  }
  bpe["vocab"] = vocab;
  bpe["merges"] = merges;
  for (std::size_t i = 0; i < tokenizer["added_tokens"].size(); ++i)
    tokenizer["added_tokens"][i]["id"] = 3000 + i;
  Json config = read_json_file(model + "/tokenizer_config.json");
  config.erase("added_tokens_decoder");
  write_json(model + "/tokenizer_config.json", config);
  write_json(model + "/tokenizer.json", tokenizer);

  const std::string request =
      " --tokens 100,200,300 -n 40 --temp 3 --top-p 1 --top-k 0 --seed 1 --ignore-eos";
  const Json result = run_json("run " + model + request);
  EXPECT_EQ(result["tokens"], run_json("run " + kModel + request)["tokens"]);
  std::string kept;
  std::size_t dropped = 0;
  for (const Json& token : result["tokens"]) {
    if (token >= 3000) {
      ++dropped;
    } else {
      kept += (kept.empty() ? "" : ",") + token.dump();
    }
  }
  EXPECT_GT(dropped, 0u);
  ASSERT_NE(kept, "");
  EXPECT_EQ(result["text"], run_json("detokenize " + kModel + " --tokens " + kept)["text"]);
  EXPECT_EQ(run("detokenize " + model + " --tokens 6400").code, 1);
}

// Hugging Face never meets such an id either; a checkpoint with a shortened vocabulary often keeps its old
// id.
TEST_F(RunTest, EndOfTextBeyondTheVocabularyIsWarnedOf) {
  const std::string model = copy_of_model(file("far_eos"));
  Json generation = read_json_file(model + "/generation_config.json");
  generation["eos_token_id"] = {6397, 151645};
  write_json(model + "/generation_config.json", generation);
  const Outcome outcome = run("run " + model + " --tokens 1,2 -n 2 --temp 0");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.err.find("warning"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("151645"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("6397"), std::string::npos) << outcome.err;
  EXPECT_EQ(run("run " + model + " --tokens 1,2 -n 2 --temp 0 -q").err, "");
  EXPECT_EQ(run("run " + kModel + " --tokens 1,2 -n 2 --temp 0").err.find("warning"), std::string::npos);
}

TEST_F(RunTest, ReadsAheadUnlessToldNotTo) {
  const std::string what = "run " + kModel + " -p Once -n 60 --temp 0 --ignore-eos --memory " + memory(24);
  const Json ahead = run_json(what), not_ahead = run_json(what + " --prefetch none");
  EXPECT_EQ(ahead["tokens"], not_ahead["tokens"]);
  const Json& count = ahead["experts"]["prefetch"];
  EXPECT_EQ(count["policy"], "lookahead");
  EXPECT_GT(count["useful"].get<int>() + count["late"].get<int>(), 0);
  EXPECT_GT(ahead["experts"]["decode"]["prefetch_bytes"], 0);
  EXPECT_GT(ahead["experts"]["decode"]["policy_s"], 0);
  EXPECT_GT(ahead["experts"]["decode"]["demand_s"], 0);
  EXPECT_EQ(not_ahead["experts"]["decode"]["prefetch_bytes"], 0);
  EXPECT_EQ(not_ahead["experts"]["prefetch"]["policy"], "none");

  std::string prompt;
  for (int i = 0; i < 40; ++i) prompt += "Once upon a time ";
  const Json one = run_json("run " + kModel + " -p '" + prompt + "' -n 1 --temp 0 --prefetch none " +
                            "--cache none --memory " + memory(40));
  EXPECT_EQ(one["experts"]["prefill"]["prefetch_bytes"], 0);
  EXPECT_EQ(one["experts"]["prefill"]["hits"], 0);
}

double per_token(const Json& result, const char* name) {
  const Json& decode = result["experts"]["decode"];
  return decode[name].get<double>() / decode["tokens"].get<double>();
}

// The factor is 1.5: the plan takes caches as full of the experts that the text uses most, and they are
// filled by what it used last.
TEST_F(RunTest, BytesArePredictedFromTheRecordedRoutingOfTheSameRun) {
  const std::string text = " -p 'The old king looked at his daughter' -n 200 --ignore-eos --temp 0 ";
  ASSERT_EQ(run("trace " + store() + text + "--quiet -o " + file("same.trace")).code, 0);
  ASSERT_EQ(
      run("profile " + store() + " --quiet --trace " + file("same.trace") + " -o " + file("same.json")).code,
      0);
  constexpr double kFactor = 1.5;
  for (const int mib : {24, 28, 34})
    for (const std::string prefetch : {"none", "lookahead"}) {
      const Json result = run_json("run " + store() + text + "--profile " + file("same.json") +
                                   " --prefetch " + prefetch + " --memory " + memory(mib));
      SCOPED_TRACE(prefetch + " in " + memory(mib) + ": " + result["predicted"].dump() + " " +
                   result["experts"].dump());
      const Json& decode = result["experts"]["decode"];
      EXPECT_EQ(decode["useful_bytes"].get<double>() + decode["wasted_bytes"].get<double>(),
                decode["bytes_read"].get<double>() + decode["prefetch_bytes"].get<double>());
      const Json& predicted = result["predicted"];
      EXPECT_EQ(predicted["routing"], "recorded");
      EXPECT_EQ(predicted["bytes_hint"], nullptr);
      const auto needed = predicted["bytes_per_token"].get<double>(),
                 wasted = predicted["wasted_bytes_per_token"].get<double>();
      const double useful = per_token(result, "useful_bytes"), in_vain = per_token(result, "wasted_bytes");
      EXPECT_LT(useful, kFactor * needed);
      EXPECT_GT(useful * kFactor, needed);
      EXPECT_LT(useful + in_vain, kFactor * (needed + wasted));
      EXPECT_GT((useful + in_vain) * kFactor, needed);
      EXPECT_EQ(wasted > 0, prefetch == "lookahead");
    }
}

TEST_F(RunTest, WhereAPredictionIsFarOffTheRunSaysWhatToDo) {
  // In a short text most of what is read fills the caches.
  const std::string few = "run " + store() + " -p Once -n 4 --temp 0 --ignore-eos --memory " + memory(64);
  const auto hint = run_json(few)["predicted"]["bytes_hint"].get<std::string>();
  EXPECT_NE(hint.find("short text"), std::string::npos) << hint;
  EXPECT_NE(run(few).err.find("hint              a short text"), std::string::npos);

  // A recording of a text that used the same four experts of each layer all the time.
  ASSERT_EQ(run("profile " + store() + " --repeats 1 --quiet -o " + file("wrong.json")).code, 0);
  Json profile = sluice::read_json_file(file("wrong.json"));
  profile["ranks"] = Json::array();
  for (int r = 0; r < 32; ++r) profile["ranks"].push_back(r < 4 ? 1 : 0);
  std::ofstream(file("wrong.json")) << profile;
  const std::string far = "run " + store() +
                          " -p Once -n 100 --temp 0 --ignore-eos --prefetch none --memory " + memory(24) +
                          " --profile " + file("wrong.json");
  const Outcome outcome = run(far);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.err.find("(recorded routing)"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("the prediction takes caches as holding"), std::string::npos) << outcome.err;

  // What read-ahead reads in vain has a sentence of its own, where it is more than twice or less than half.
  const std::string ahead = "run " + store() + " -p Once -n 60 --temp 0 --ignore-eos --memory " + memory(24) +
                            " --profile " + file("wrong.json") + " --prefetch ";
  const Json result = run_json(ahead + "lookahead");
  const double measured = per_token(result, "wasted_bytes"),
               predicted = result["predicted"]["wasted_bytes_per_token"].get<double>();
  const std::string said = result["predicted"]["waste_hint"].dump();
  EXPECT_EQ(said.find("less was read in vain than predicted") != std::string::npos, 2 * measured < predicted)
      << said << ": " << predicted << " predicted, " << measured << " measured";
  EXPECT_EQ(said.find("more was read in vain than predicted") != std::string::npos, measured > 2 * predicted)
      << said << ": " << predicted << " predicted, " << measured << " measured";
  EXPECT_EQ(run_json(ahead + "none")["predicted"]["waste_hint"], nullptr);
}

TEST_F(RunTest, ARefusedValueEndsWithWhatToDo) {
  const Outcome outcome = run("run " + store() + " -p Once --temp -1");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(
      outcome.err,
      "sluice: --temp: value out of range; expected 0 or more, found -1; `sluice run --help` explains it\n");
}

TEST_F(RunTest, AStoreWithoutItsManifestIsNamedSo) {
  const std::string store = file("headless.sluice");
  ASSERT_EQ(run("pack " + kModel + " -o " + store + " -q").code, 0);
  fs::remove(store + "/manifest.json");
  const Outcome outcome = run("run " + store + " -p Once -n 1");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("manifest.json: a file of the store is missing"), std::string::npos)
      << outcome.err;
}

// The file that -o names always holds a whole answer: an interrupted run leaves the previous one.
TEST_F(RunTest, AnInterruptedRunWritesNoAnswer) {
  const std::string out = file("answer.txt");
  std::ofstream(out) << "an earlier answer";
  sluice::program::Running program({"run", kModel, "-p", "Once", "-n", "4000", "--ignore-eos", "--temp", "0",
                                    "--isa", "scalar", "--threads", "1", "-o", out});
  ASSERT_FALSE(program.read().empty());  // the run is under way
  program.interrupt();
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 130) << "it was finished before the signal came";
  EXPECT_NE(outcome.out.find(out + ": not written"), std::string::npos) << outcome.out;
  std::ifstream kept(out);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(kept), {}), "an earlier answer");
}

// The user asks for lossy routing by name, and the run says what it changed.
TEST_F(RunTest, ARouterThatPrefersWhatIsInMemorySaysWhatItChanged) {
  const std::string what =
      "run " + kModel + " -p 'Once upon a time' -n 40 --temp 0 --ignore-eos --memory " + memory(24);
  const Json exact = run_json(what)["experts"]["routing"];
  EXPECT_EQ(exact["router"], "exact");
  EXPECT_GT(exact["tokens"], 0);
  for (const char* count : {"changed_tokens", "substituted", "mass_lost"})
    EXPECT_EQ(exact[count], 0) << count;
  const std::string lossy = what + " --router cache-prior";
  const Json changed = run_json(lossy)["experts"]["routing"];
  EXPECT_EQ(changed["router"], "cache-prior");
  EXPECT_EQ(changed["tokens"], exact["tokens"]);
  EXPECT_GT(changed["changed_tokens"], 0);
  EXPECT_GE(changed["substituted"], changed["changed_tokens"]);
  EXPECT_GT(changed["mass_lost"], 0);
  const std::string table = run(lossy).err;
  EXPECT_NE(table.find("routing           cache-prior: "), std::string::npos) << table;
  EXPECT_EQ(run(what).err.find("routing  "), std::string::npos);
}

TEST_F(RunTest, SlicesAreForModelsThatHaveThem) {
  const Outcome refused = run("run " + kModel + " -p Once --cache slice-lru");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("--cache"), std::string::npos) << refused.err;
}

TEST_F(RunTest, AnAnswerThatFillsTheContextSaysSo) {
  const std::string request =
      "run " + kModel + " --tokens 1,2,3,4,5 --temp 0 --ignore-eos --memory " + memory(40);
  EXPECT_EQ(run_json(request + " -n 4 -c 8")["stop_reason"], "length");
  const Json full = run_json(request + " -n 20 -c 8");
  EXPECT_EQ(full["stop_reason"], "context");
  EXPECT_EQ(full["tokens"].size(), 4u);
  const Outcome text = run(request + " -n 20 -c 8");
  EXPECT_NE(text.err.find("(context)"), std::string::npos) << text.err;
  EXPECT_NE(text.err.find(
                "sluice: warning: -c: the context of 8 tokens is full, and ended the answer before -n did; "
                "give a larger -c, at most 4096\n"),
            std::string::npos)
      << text.err;
  EXPECT_EQ(run(request + " -n 20 -c 8 -q").err, "");
  const Outcome both = run(request + " --tokens 1,2 -n 6 -c 8 -q --json");
  const Json sequences = Json::parse(both.out)["sequences"];
  EXPECT_EQ(sequences[0]["stop_reason"], "context");
  EXPECT_EQ(sequences[1]["stop_reason"], "length");
}

TEST_F(RunTest, StopStringsAndEosEndTheText) {
  const Json whole = run_json("run " + store() + " -p 'The old king' -n 60 --temp 0");
  const auto text = whole["text"].get<std::string>();
  const std::string word = text.substr(text.find(' ', text.size() / 2), 5);
  const Json stopped = run_json("run " + store() + " -p 'The old king' -n 60 --temp 0 --stop '" + word + "'");
  EXPECT_EQ(stopped["stop_reason"], "stop");
  EXPECT_EQ(stopped["text"].get<std::string>(), text.substr(0, text.find(word)));
  EXPECT_EQ(run_json("run " + store() + " --tokens 1,2,3 -n 0")["tokens"].size(), 0u);
}

TEST_F(RunTest, RequestsThatMakeNoSenseAreRefusedWithNumbers) {
  const auto expect_error = [](const std::string& arguments, int code, const std::string& words) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
  };
  expect_error("run " + kModel + " -p x --memory 5MiB", 1, "at least");
  expect_error("run " + kModel + " -p x --memory 5XB", 2, "--memory");
  expect_error("run " + kModel + " -p x --memory ''", 2, "--memory");
  expect_error("run " + kModel + " -p x --memory 900TiB", 1, "at most");
  expect_error("run " + kModel + " -p x --seed -1", 2, "--seed");
  expect_error("run " + kModel + " -f " + kModel + "/eval.txt -n 1 --memory 4MiB", 1,
               "too large to be tokenized");
  expect_error("eval " + kModel + " -f " + kModel + "/model.safetensors", 1, "model.safetensors at byte");
  expect_error("run " + kModel + " --tokens 1,6400 -n 1", 1, "6400");
  expect_error("run " + kModel + " --tokens 1,,2 -n 1", 2, "--tokens");
  expect_error("run " + kModel + " --tokens 1,2,3 -n 1 -c 2", 1, "3 tokens");
  expect_error("run " + kModel + " -p x -c 999999", 2, "4096");
  expect_error("run " + kModel + " -p '' -n 1", 1, "no tokens");
  expect_error("run " + kModel + " -p x --cache belady", 2, "belady");
  expect_error("run " + kModel + " -p x --cache nonsense", 2,
               "one of none, static, fifo, lru, lfu, marking, eam, zip-pools, slice-lru");
  EXPECT_EQ(run("run " + kModel + " -p x --cache nonsense").err.find("belady"), std::string::npos);
  expect_error("run /no/model -p x --cache nonsense", 2, "--cache");
  EXPECT_EQ(run("run " + kModel + " -p x --cache belady").err.find("simulate"), std::string::npos);
  expect_error("run " + kModel + " -p x --keep packed", 2, "--keep");
  expect_error("run " + kModel + " -p x --isa mips", 2, "--isa");
  expect_error("run " + kModel + " -p x --temp -1", 2, "--temp");
  expect_error("run " + kModel + " -p x -n -4", 2, "-n: ");
  expect_error("run " + kModel, 2, "--prompt");
  expect_error("run /nowhere -p x", 1, "/nowhere");
  expect_error("eval " + kModel + " -f /dev/null", 1, "too short");
  expect_error("run " + kModel + " -p x -n 1 --out /nowhere/x.txt", 1, "/nowhere");
  expect_error("run " + kModel + " -p x -n 1 --out " + directory_->path(), 1, directory_->path());
  expect_error("run /no/model -p x -n 1 --out /nowhere/x.txt", 1,
               "/nowhere");  // reported before the model is opened
  expect_error("forward /no/model --tokens 1 --out /nowhere/x.npy", 1, "/nowhere");
  expect_error("forward " + kModel + " --tokens 1 --out /nowhere/x.npy", 1, "/nowhere");
  expect_error("forward " + kModel + " --tokens 1 --out /dev/full/x", 1, "/dev/full");
}

TEST_F(RunTest, AFlippedBitInTheStoreIsAnErrorAndNeverText) {
  const std::string broken = file("broken.sluice");
  fs::copy(store(), broken, fs::copy_options::recursive);
  const std::string experts = broken + "/experts-00000.bin";
  std::fstream stream(experts, std::ios::binary | std::ios::in | std::ios::out);
  for (std::uintmax_t at = 100; at < fs::file_size(experts); at += 50000) {
    stream.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(stream.get() ^ 1);
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(byte);
  }
  stream.close();
  const Outcome outcome = run("run " + broken + " -p 'The old king' -n 20 --json");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("experts-00000.bin at byte"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("checksum"), std::string::npos) << outcome.err;
}

TEST_F(RunTest, FieldsOfThePublisherThatHaveNoEffectAreNamedOnce) {
  const std::string model = copy_of_model(file("beams"));
  std::ofstream(model + "/generation_config.json")
      << R"({"num_beams": 4, "no_repeat_ngram_size": 3, "typical_p": 0.9, "eos_token_id": 999999})";
  const std::string request = "run " + model + " -p 'The old king' -n 2";
  const auto has = [](const Outcome& outcome, const std::string& text) {
    return outcome.err.find(text) != std::string::npos;
  };
  const Outcome greedy = run(request);
  EXPECT_EQ(greedy.code, 0);
  EXPECT_TRUE(has(greedy, "generation_config.json: without effect here: num_beams, no_repeat_ngram_size\n"))
      << greedy.err;
  EXPECT_TRUE(has(greedy, "end-of-text token 999999 is beyond the vocabulary")) << greedy.err;
  EXPECT_TRUE(has(run(request + " --temp 1"), "no_repeat_ngram_size, typical_p\n"));
  EXPECT_EQ(run(request + " -q").err, "");
}

}  // namespace
