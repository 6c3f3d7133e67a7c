// Clients of other projects against a server that answers from a script: SLUICE_SERVE_CLIENT is a command,
// which gets the server's address as its argument (tests/clients holds such programs).
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "serve/server/test_server.h"

namespace sluice::serve {
namespace {

bool mentions(const std::vector<TextRequest>& sequences, std::string_view word) {
  return sequences.front().parsing && sequences.front().parsing->prompt_tail.find(word) != std::string::npos;
}

void answer_clients(const std::vector<TextRequest>& sequences, EventQueue& events) {
  using testing::example_finish;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    events.push({i, Admitted{41, 32}, {}});
    if (mentions(sequences, "please fail")) {
      events.push({i, TextDelta{"Hel", {}}, {}});
      events.push({i, Failure{Failure::Kind::kError, "experts.bin at byte 4096: checksum"}, {}});
      return;
    }
    events.push({i, ReasoningDelta{"Short."}, {}});
    if (sequences[i].parsing && sequences[i].parsing->calls) {
      events.push({i, ToolBegin{0, "call_Zk3vQ0aT9mX2cR7bL5nD1eWs", "get_weather"}, {}});
      events.push({i, ToolArguments{0, "{\"city\": "}, {}});
      events.push({i, ToolArguments{0, "\"Paris\"}"}, {}});
      events.push({i, example_finish(FinishReason::kToolCalls), {}});
      continue;
    }
    std::vector<ScoredToken> scores;
    if (sequences[i].logprobs) scores.push_back({5, -0.25, {{5, -0.25}, {6, -2}}});
    events.push({i, TextDelta{"Hel", scores}, {}});
    events.push({i, TextDelta{"lo.", scores}, {}});
    events.push({i, example_finish(), {}});
  }
}

TEST(Clients, TheCommandOfTheEnvironment) {
  const char* command = std::getenv("SLUICE_SERVE_CLIENT");
  if (command == nullptr) GTEST_SKIP() << "SLUICE_SERVE_CLIENT names no client";
  ServerOptions options;
  options.api_keys = {"secret"};
  testing::TestServer server(std::move(options));
  server.backend.set_script(answer_clients);
  EXPECT_EQ(std::system((std::string(command) + ' ' + server.server.address()).c_str()), 0);
}

}  // namespace
}  // namespace sluice::serve
