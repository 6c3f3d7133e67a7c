// Runs the bundled model with the built program: what it computes, and the text that comes of it.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "packed_model.h"
#include "terminal.h"

namespace {

namespace fs = std::filesystem;
using sluice::Json;
using sluice::read_json_file;
using sluice::program::kModel;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::PackedModelTest;
using sluice::program::run;
using sluice::program::run_json;
using sluice::program::run_on_terminal;

class RunTest : public PackedModelTest {};

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
  EXPECT_EQ(run("detokenize " + model + " --tokens 6400").code, 2);
}

// Neither what the user asks nor what a model answers can clear the screen or rename the window. Files and
// pipes get the bytes.
TEST_F(RunTest, ATerminalIsShownEscapedWhatWouldSteerIt) {
  const std::string steers = "a\x1b[2J\tb\nc\rd\x1b]0;e\x07";
  const std::string shown = "a\\x1b[2J\tb\r\nc\\x0dd\\x1b]0;e\\x07";  // a terminal begins lines by "\r\n"
  // The model's first answer is a token that clears the screen.
  const std::string ask = " --tokens 1,2,3 -n 1 --temp 0", model = copy_of_model(file("clears"));
  const Json first = run_json("run " + kModel + ask)["tokens"][0];
  Json tokenizer = read_json_file(model + "/tokenizer.json");
  Json& bpe = tokenizer["model"];
  Json vocab = Json::object(), merges = Json::array();
  for (const auto& [token, id] : bpe["vocab"].items()) vocab[id == first ? "ě[2J" : token] = id;
  for (const Json& merge : bpe["merges"]) {
    const auto left = merge[0].get<std::string>(), right = merge[1].get<std::string>();
    if (vocab.contains(left) && vocab.contains(right) && vocab.contains(left + right))
      merges.push_back(merge);
  }
  bpe["vocab"] = vocab;
  bpe["merges"] = merges;
  write_json(model + "/tokenizer.json", tokenizer);
  ASSERT_EQ(run("run " + model + ask + " -q").out, "\x1b[2J\n");

  std::string ids;
  const Outcome tokens = run("tokenize " + kModel + " --no-special --json -p '" + steers + "'");
  const Json encoded = Json::parse(tokens.out);
  for (const Json& id : encoded["ids"]) ids += (ids.empty() ? "" : ",") + id.dump();
  ASSERT_EQ(run("detokenize " + kModel + " --tokens " + ids).out, steers + "\n");
  const struct {
    std::vector<std::string> words;
    std::string shown;
    bool repeats_prompt = false;
  } calls[] = {
      {{"run", kModel, "-p", steers, "-n", "1", "-q"}, shown, true},
      {{"run", model, "--tokens", "1,2,3", "-n", "1", "--temp", "0", "-q"}, "\\x1b[2J"},
      {{"run", model, "--tokens", "1,2,3", "--tokens", "1,2,3", "-n", "1", "--temp", "0", "-q"},
       "[2] \\x1b[2J"},
      {{"detokenize", kModel, "--tokens", ids}, shown},
  };
  for (const char* const kind : {"xterm", "dumb"})
    for (const auto& [words, expected, repeats_prompt] : calls) {
      const auto terminal = run_on_terminal(words, kind);
      if (!terminal) GTEST_SKIP() << "TERMINALS CANNOT BE MADE HERE: what one shows is not checked";
      EXPECT_EQ(terminal->code, 0) << terminal->out;
      EXPECT_EQ(terminal->out.find("\x1b[2J"), std::string::npos) << terminal->out;
      EXPECT_EQ(terminal->out.find("\x1b]"), std::string::npos) << terminal->out;
      if (repeats_prompt && kind == std::string("dumb")) continue;
      EXPECT_NE(terminal->out.find(expected), std::string::npos) << terminal->out;
    }
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

// Sequences of a batch share what is read for several of them.
TEST_F(RunTest, SequencesSayWhatTheyCost) {
  const Json json = run_json("run " + kModel +
                             " --tokens 1,2,3,4,5 --tokens 9,8,7 --tokens 300,20,4 -n 12 --temp 0 "
                             "--ignore-eos --prefetch none --memory " +
                             memory(40));
  std::uint64_t demand = 0, most_accesses = 0;
  double bytes = 0;
  for (const Json& sequence : json["sequences"]) {
    const Json& experts = sequence["experts"];
    EXPECT_EQ(experts["accesses"],
              experts["hits"].get<std::uint64_t>() + experts["misses"].get<std::uint64_t>());
    demand += experts["demand"].get<std::uint64_t>();
    most_accesses = std::max(most_accesses, experts["accesses"].get<std::uint64_t>());
    bytes += experts["bytes_read"].get<double>();
  }
  const Json& all = json["experts"];
  const auto sum = [&](const char* field) {
    return all["prefill"][field].get<std::uint64_t>() + all["decode"][field].get<std::uint64_t>();
  };
  EXPECT_EQ(most_accesses, sum("accesses"));  // for prompts and answers that were all in all steps
  EXPECT_GT(demand, sum("accesses"));
  EXPECT_GT(bytes, 0);
  EXPECT_NEAR(bytes, static_cast<double>(sum("bytes_read")), 1e-6 * bytes);
}

// `chat` renders the same message, and shows the answer without the blanks around it.
TEST_F(RunTest, APromptMayBeWhatAUserSays) {
  const std::string what = " --chat-template chatml -p 'Tell me of the sea.' -n 24 --temp 0 -q";
  const Json prompt = Json::parse(
      run("template " + kModel + " --chat-template chatml -p 'Tell me of the sea.' --tokens --json").out);
  const Json asked = run_json("run " + store() + what);
  EXPECT_EQ(asked["prompt_tokens"], prompt["ids"]);
  const Outcome text = run("run " + store() + what), chat = run("chat " + store() + what);
  EXPECT_NE(text.out.find(chat.out.substr(0, chat.out.size() - 1)), std::string::npos) << text.out << "\n"
                                                                                       << chat.out;
  EXPECT_EQ(text.out, asked["text"].get<std::string>() + "\n");  // the prompt is not part of it

  const Outcome none = run("run " + store() + " --chat -p Hello");
  EXPECT_EQ(none.code, 1);
  EXPECT_NE(none.err.find("--chat-template chatml"), std::string::npos) << none.err;
  const Outcome ids = run("run " + store() + " --chat --tokens 1,2");
  EXPECT_EQ(ids.code, 2);
  EXPECT_NE(ids.err.find("--chat: token ids are taken verbatim; expected text, by -p or -f, found --tokens"),
            std::string::npos)
      << ids.err;
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

TEST_F(RunTest, LimitsOfDrawingThatHaveNoEffectAreNamed) {
  const std::string request = "run " + store() + " -p 'The old king' -n 2";
  const Outcome greedy = run(request + " --temp 0 --top-k 5 --min-p 0.1");
  EXPECT_EQ(greedy.code, 0);
  EXPECT_NE(greedy.err.find("--top-k, --min-p: without effect"), std::string::npos) << greedy.err;
  EXPECT_EQ(run(request + " --temp 0 --top-k 5 -q").err, "");
  EXPECT_EQ(run(request + " --temp 1 --top-k 5").err.find("without effect"), std::string::npos);
}

}  // namespace
