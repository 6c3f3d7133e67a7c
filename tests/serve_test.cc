// `sluice serve`, as clients find it.
#include <gmock/gmock.h>

#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

#include "base/json/json.h"
#include "bundled_model.h"
#include "http_client.h"
#include "scratch_test.h"

namespace sluice::program {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// 64 MiB, and more where the program itself takes more.
const std::string& budget() {
  static const std::string text = program::memory(64);
  return text;
}
std::size_t budget_bytes() { return std::stoul(budget()) << 20; }

// The server on any free port, with the bundled model or another.
class Server {
 public:
  explicit Server(std::vector<std::string> flags = {}, const std::string& model = kModel)
      : running_(words(std::move(flags), model)) {
    while (said_.find(" serves ") == said_.npos) {
      const std::string more = running_.read();
      if (more.empty()) break;
      said_ += more;
    }
    const std::size_t at = said_.find("http://127.0.0.1:");
    EXPECT_NE(at, said_.npos) << said_;
    if (at != said_.npos) port_ = static_cast<std::uint16_t>(std::atoi(said_.c_str() + at + 17));
  }
  std::uint16_t port() const { return port_; }
  Running& running() { return running_; }
  const std::string& said() const { return said_; }

 private:
  static std::vector<std::string> words(std::vector<std::string> flags, const std::string& model) {
    std::vector<std::string> all = {"serve",    model,    "--port",          "0",
                                    "--memory", budget(), "--chat-template", "chatml"};
    all.insert(all.end(), flags.begin(), flags.end());
    return all;
  }

  Running running_;
  std::string said_;
  std::uint16_t port_ = 0;
};

Json json_of(const Reply& reply) { return parse_json(reply.body, "reply"); }

std::string completion_body(const std::string& prompt, std::size_t tokens, const std::string& more = "") {
  return R"({"prompt":)" + Json(prompt).dump() + R"(,"max_tokens":)" + std::to_string(tokens) +
         R"(,"temperature":0)" + more + "}";
}

std::string text_of(const Reply& reply) {
  EXPECT_EQ(reply.status, 200) << reply.body;
  return reply.status == 200 ? json_of(reply)["choices"][0]["text"].get<std::string>() : "";
}

TEST(Serve, AnswersAsRunDoes) {
  const Outcome run = program::run("run '" + kModel + "' -p 'Once upon a time' -n 24 --temp 0 --memory " +
                                   budget() + " --quiet");
  Server server;
  const Reply reply = ask(server.port(), "POST", "/v1/completions", completion_body("Once upon a time", 24));
  EXPECT_THAT(run.out, HasSubstr(text_of(reply)));
  EXPECT_FALSE(text_of(reply).empty());
  EXPECT_EQ(json_of(reply)["usage"]["completion_tokens"].get<int>(), 24);
}

TEST(Serve, AnswersBesideOthersAreThoseAlone) {
  Server server({"--parallel", "4"});
  const std::vector<std::string> prompts = {"Once", "The fox said", "A long way from home", "Once upon",
                                            "In the sea"};
  std::vector<std::string> alone, together(prompts.size());
  for (const std::string& prompt : prompts)
    alone.push_back(text_of(ask(server.port(), "POST", "/v1/completions",
                                completion_body(prompt, 16, R"(,"cache_prompt":false)"))));
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < prompts.size(); ++i)
    clients.emplace_back([&, i] {
      together[i] = text_of(ask(server.port(), "POST", "/v1/completions", completion_body(prompts[i], 16)));
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(together, alone);
}

TEST(Serve, StreamsWhatItAnswersWhole) {
  Server server;
  const std::string messages =
      R"({"messages":[{"role":"user","content":"Tell me of a fox"}],"max_tokens":12,"temperature":0)";
  const Reply whole = ask(server.port(), "POST", "/v1/chat/completions", messages + "}");
  ASSERT_EQ(whole.status, 200) << whole.body;
  const Reply stream = ask(server.port(), "POST", "/v1/chat/completions", messages + R"(,"stream":true})");
  ASSERT_EQ(stream.status, 200);
  std::string text;
  std::size_t events = 0;
  for (std::size_t at = stream.body.find("data: {"); at != stream.body.npos;
       at = stream.body.find("data: {", at + 1)) {
    const Json event = parse_json(stream.body.substr(at + 6, stream.body.find('\n', at) - at - 6), "event");
    const Json& delta = event["choices"][0]["delta"];
    if (delta.contains("content") && delta["content"].is_string())
      text += delta["content"].get<std::string>();
    ++events;
  }
  EXPECT_GT(events, 4u);
  EXPECT_EQ(text, json_of(whole)["choices"][0]["message"]["content"].get<std::string>());
  EXPECT_THAT(stream.body, HasSubstr("data: [DONE]"));
}

TEST(Serve, TheChosenTokenIsAmongTheLikeliest) {
  Server server;
  const Reply reply = ask(server.port(), "POST", "/v1/chat/completions",
                          R"({"messages":[{"role":"user","content":"a"}],"max_tokens":8,"temperature":2,)"
                          R"("seed":3,"logprobs":true,"top_logprobs":1})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  std::size_t behind = 0;  // tokens that were not the likeliest
  const Json answer = json_of(reply);
  for (const Json& token : answer["choices"][0]["logprobs"]["content"]) {
    std::size_t found = 0;
    for (const Json& other : token["top_logprobs"])
      found += other["token"] == token["token"] && other["logprob"] == token["logprob"] ? 1 : 0;
    EXPECT_EQ(found, 1u);
    behind += token["top_logprobs"].size() - 1;
  }
  EXPECT_GT(behind, 0u);
}

// A model whose vocabulary has been padded: 6405 rows, and a tokenizer of 6400 tokens.
class ServePadded : public sluice::testing::ScratchTest {
 protected:
  static constexpr int kTokens = 6400, kRows = 6405;
  void SetUp() override {
    ScratchTest::SetUp();
    std::ofstream(file("config.json"))
        << R"({"model_type": "qwen3_moe", "hidden_size": 64, "head_dim": 16, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 64, "moe_intermediate_size": 32,
          "num_experts": 4, "num_experts_per_tok": 2, "norm_topk_prob": true, "rope_theta": 10000.0,
          "max_position_embeddings": 512, "tie_word_embeddings": false, "vocab_size": )"
        << kRows << "}";
    const Outcome made = program::run("synth " + file("config.json") + " -q -o " + file("model") +
                                      " --tokenizer '" + kModel + "'");
    ASSERT_EQ(made.code, 0) << made.err;
  }
};

TEST_F(ServePadded, TakesTheIdsThatRunTakes) {
  Server server({}, file("model"));
  for (const int id : {0, kTokens - 1, kTokens, kRows - 1, kRows, kRows + 1}) {
    const std::string text = std::to_string(id);
    const bool taken = id < kRows;
    const Outcome run =
        program::run("run " + file("model") + " --tokens " + text + " -n 2 --temp 0 --ignore-eos -q");
    EXPECT_EQ(run.code, taken ? 0 : 2) << id << run.err;
    const Reply completion = ask(server.port(), "POST", "/v1/completions",
                                 R"({"max_tokens":2,"temperature":0,"prompt":[)" + text + "]}");
    EXPECT_EQ(completion.status, taken ? 200 : 400) << id << completion.body;
    const Reply biased =
        ask(server.port(), "POST", "/v1/completions",
            R"({"max_tokens":2,"temperature":0,"prompt":"a","logit_bias":{")" + text + R"(":100}})");
    EXPECT_EQ(biased.status, taken ? 200 : 400) << id << biased.body;
    const Reply detokenized = ask(server.port(), "POST", "/detokenize", R"({"tokens":[)" + text + "]}");
    EXPECT_EQ(detokenized.status, taken ? 200 : 400) << id << detokenized.body;
    if (taken) continue;
    const std::string range = "0 to " + std::to_string(kRows - 1);
    EXPECT_THAT(run.err, HasSubstr(range));
    EXPECT_THAT(completion.body, HasSubstr(range));
    EXPECT_THAT(detokenized.body, HasSubstr(range));
  }
}

TEST(Serve, ABodyOfManyPartsDoesNotBreakTheBudget) {
  Server server;
  std::string parts = "[[]";
  while (parts.size() < 1'500'000) parts += ",[]";
  EXPECT_EQ(ask(server.port(), "POST", "/v1/completions", R"({"prompt":"a","zz":)" + parts + "]}").status,
            413);
  EXPECT_FALSE(text_of(ask(server.port(), "POST", "/v1/completions", completion_body("Once", 2))).empty());
}

TEST(Serve, FindsAPromptAgain) {
  Server server;
  const std::string prompt =
      "Once upon a time there was a little fox who lived near the sea and liked to sing";
  const Json first = json_of(ask(server.port(), "POST", "/v1/completions", completion_body(prompt, 4)));
  const Json second = json_of(ask(server.port(), "POST", "/v1/completions", completion_body(prompt, 4)));
  EXPECT_EQ(first["usage"]["prompt_tokens_details"]["cached_tokens"].get<int>(), 0);
  EXPECT_EQ(second["usage"]["prompt_tokens_details"]["cached_tokens"].get<int>(),
            first["usage"]["prompt_tokens"].get<int>() - 1);
  EXPECT_EQ(second["choices"][0]["text"], first["choices"][0]["text"]);
}

TEST(Serve, ShowsWhatItDoes) {
  Server server;
  ask(server.port(), "POST", "/v1/completions", completion_body("Once", 4));
  EXPECT_EQ(ask(server.port(), "GET", "/health").body, R"({"status":"ok"})");
  EXPECT_EQ(json_of(ask(server.port(), "GET", "/v1/models"))["data"][0]["id"].get<std::string>(),
            "fable-moe-18m");
  const Json plan = json_of(ask(server.port(), "GET", "/v1/plan"));
  EXPECT_EQ(plan["budget"].get<std::size_t>(), budget_bytes());
  EXPECT_LE(plan["memory"]["host"]["used"].get<std::size_t>(), budget_bytes());
  EXPECT_EQ(plan["memory"]["host"]["by_name"]["serve"]["now"].get<std::size_t>(), 4u << 20);
  EXPECT_GT(json_of(ask(server.port(), "GET", "/v1/experts"))["experts"].get<int>(), 1);
  const std::string metrics = ask(server.port(), "GET", "/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("sluice_generation_tokens_total{model_name=\"fable-moe-18m\"} 4"));
  EXPECT_THAT(metrics, HasSubstr("sluice_memory_budget_bytes{"));
}

TEST(Serve, WantsItsKey) {
  Server server({"--api-key", "secret-1"});
  EXPECT_EQ(ask(server.port(), "GET", "/v1/models").status, 401);
  EXPECT_EQ(ask(server.port(), "GET", "/v1/models", "", "Authorization: Bearer wrong\r\n").status, 401);
  EXPECT_EQ(ask(server.port(), "GET", "/v1/models", "", "Authorization: Bearer secret-1\r\n").status, 200);
  EXPECT_EQ(ask(server.port(), "GET", "/health").status, 200);
  EXPECT_THAT(run_command("cat /proc/*/cmdline").out, Not(HasSubstr("secret-1")));
}

TEST(Serve, ATakenPortFailsBeforeTheModelIsLoaded) {
  Server server;
  const Outcome second = program::run("serve '" + kModel + "' --memory " + budget() + " --port " +
                                      std::to_string(server.port()));
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.err, HasSubstr("--port"));
}

TEST(Serve, OthersAreNotServedWithoutAKey) {
  const Outcome outcome =
      program::run("serve '" + kModel + "' --memory " + budget() + " --port 0 --host 0.0.0.0");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--api-key"));
}

// What no request may ask for is no default either.
TEST(Serve, SamplingOfTheCommandLineHasTheLimitsOfRequests) {
  for (const auto& [flag, value] :
       std::vector<std::pair<std::string, std::string>>{{"--temp", "2.1"},
                                                        {"--temp", "-0.1"},
                                                        {"--top-p", "0"},
                                                        {"--min-p", "1.5"},
                                                        {"--repeat-penalty", "11"}}) {
    const Outcome outcome =
        program::run("serve '" + kModel + "' --memory " + budget() + " --port 0 " + flag + " " + value);
    EXPECT_EQ(outcome.code, 2) << flag;
    EXPECT_THAT(outcome.err, HasSubstr(flag + ": value out of range")) << flag;
  }
}

TEST(Serve, WritesLinesOfJson) {
  Running running({"serve", kModel, "--port", "0", "--memory", budget(), "--temp", "2", "--json"});
  std::string said;
  for (std::string part = "?"; !part.empty() && said.find("\"ready\"") == said.npos; said += part)
    part = running.read();
  const Json ready = parse_json(said.substr(0, said.find('\n')).substr(said.find('{')), "line");
  EXPECT_EQ(ready["model"], Json("fable-moe-18m"));
  EXPECT_EQ(ready["budget"], Json(budget_bytes()));
  EXPECT_EQ(ready["chat"], Json(false));
  const std::string url = ready["ready"].get<std::string>();
  const auto port = static_cast<std::uint16_t>(std::atoi(url.substr(url.rfind(':') + 1).c_str()));
  EXPECT_EQ(json_of(ask(port, "GET", "/props"))["default_generation_settings"]["params"]["temperature"]
                .get<double>(),
            2);
  EXPECT_EQ(json_of(ask(port, "GET", "/tokenizer_info"))["tokenizer_class"].get<std::string>(),
            "Qwen2Tokenizer");
  for (std::string part = "?"; !part.empty() && said.find("/tokenizer_info") == said.npos; said += part)
    part = running.read();
  EXPECT_THAT(said, HasSubstr(R"("method":"GET","path":"/tokenizer_info","status":200)"));
}

TEST(Serve, ABudgetThatIsTooSmallIsOneError) {
  const Outcome outcome = program::run("serve '" + kModel + "' --memory 12MiB --port 0");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("budget"));
}

TEST(Serve, ASignalLetsRunningAnswersEnd) {
  Server server;
  HttpConnection connection(server.port());
  connection.send(request_text("POST", "/v1/completions",
                               completion_body("Once", 64, R"(,"stream":true,"ignore_eos":true)")));
  std::string all;
  // Before an answer runs, its client may be told that it waits.
  for (std::string part = "?"; !part.empty() && all.find("data: ") == std::string::npos; all += part)
    part = connection.receive();
  server.running().interrupt(SIGTERM);
  for (std::string part = connection.receive(); !part.empty(); part = connection.receive()) all += part;
  EXPECT_THAT(all, HasSubstr("[DONE]"));
  EXPECT_EQ(server.running().wait().code, 0);
}

TEST(Serve, AClientThatLeavesFreesItsPlace) {
  Server server({"--parallel", "1"});
  {
    HttpConnection connection(server.port());
    connection.send(request_text("POST", "/v1/completions",
                                 completion_body("Once", 1500, R"(,"stream":true,"ignore_eos":true)")));
    connection.receive();
  }
  std::string metrics;
  while (metrics.find(R"(reason="cancelled"} 1)") == metrics.npos) {  // the program ends this after a minute
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    metrics = ask(server.port(), "GET", "/metrics").body;
    if (metrics.empty()) break;
  }
  EXPECT_THAT(metrics, HasSubstr(R"(reason="cancelled"} 1)"));
  EXPECT_FALSE(text_of(ask(server.port(), "POST", "/v1/completions", completion_body("The fox", 2))).empty());
}

}  // namespace
}  // namespace sluice::program
