// bigmoe-runner: runs BigMoeOnEdge on given token ids and prints figures of each phase as JSON, as
// llama-runner does for llama.cpp.
//
//   bigmoe-runner -m FILE.gguf --tokens 1,2,3 [-n N] [-t THREADS] [--cache-mb MIB] [--lanes N]
//   [--mode serial|overlap] [--predict 0|1] [--dense anon|warm|mmap] [--seconds S]
//
// The engine's public interface takes text. The linker hands its calls of the tokenizer to this file
// (--wrap; see CMakeLists.txt), where a text is a list of ids, so that no vocabulary is needed and no text
// ends early. The same way tells when each llama_decode ends. The engine itself is as its authors wrote it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "../counters.h"
#include "bmoe/config.h"
#include "bmoe/session.h"
#include "bmoe/version.h"
#include "llama.h"

namespace {

std::vector<Counters> decoded;  // at the end of each llama_decode

}  // namespace

extern "C" {

int32_t __real_llama_decode(llama_context* context, llama_batch batch);
int32_t __wrap_llama_decode(llama_context* context, llama_batch batch) {
  const int32_t result = __real_llama_decode(context, batch);
  decoded.push_back(now());
  return result;
}

int32_t __wrap_llama_tokenize(const llama_vocab*, const char* text, int32_t length, llama_token* tokens,
                              int32_t most, bool, bool) {
  const std::vector<int32_t> ids = parse_tokens(std::string(text, static_cast<std::size_t>(length)));
  const auto count = static_cast<int32_t>(ids.size());
  if (count > most) return -count;
  std::copy(ids.begin(), ids.end(), tokens);
  return count;
}

int32_t __wrap_llama_token_to_piece(const llama_vocab*, llama_token token, char* text, int32_t length,
                                    int32_t, bool) {
  return std::snprintf(text, static_cast<std::size_t>(length), "%d,", token);
}

bool __wrap_llama_vocab_is_eog(const llama_vocab*, llama_token) { return false; }
}

namespace {

struct Options {
  bmoe::RunConfig config;
  std::string tokens;
  double seconds = 1e9;  // no token begins later than this after the first
};

bmoe::DenseWeightsMode dense_of(const std::string& name) {
  if (name == "anon") return bmoe::DenseWeightsMode::Anonymous;
  if (name == "warm") return bmoe::DenseWeightsMode::Warmed;
  if (name == "mmap") return bmoe::DenseWeightsMode::Mmap;
  throw std::runtime_error("--dense: expected anon, warm or mmap, found " + name);
}

Options parse(int argc, char** argv) {
  Options options;
  bmoe::RunConfig& config = options.config;
  config.moe.enabled = true;
  config.n_predict = 1;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) throw std::runtime_error(name + ": expected a value");
    const std::string value = argv[i + 1];
    if (name == "-m")
      config.model_path = value;
    else if (name == "--tokens")
      options.tokens = value;
    else if (name == "-n")
      config.n_predict = std::stoi(value);
    else if (name == "-t")
      config.n_threads = std::stoi(value);
    else if (name == "--cache-mb")
      config.moe.cache_mb = std::stoi(value);
    else if (name == "--lanes")
      config.moe.io_threads = std::stoi(value);
    else if (name == "--mode" && (value == "serial" || value == "overlap"))
      config.moe.overlap = value == "overlap";
    else if (name == "--predict")
      config.moe.predict_prefetch = value == "1";
    else if (name == "--dense")
      config.moe.dense_weights = dense_of(value);
    else if (name == "--seconds")
      options.seconds = std::stod(value);
    else
      throw std::runtime_error(
          name + " " + value +
          ": unknown; there are -m --tokens -n -t --cache-mb --lanes --mode serial|overlap "
          "--predict --dense --seconds");
  }
  if (config.model_path.empty() || options.tokens.empty())
    throw std::runtime_error("wanted: -m FILE.gguf --tokens 1,2,3");
  // The engine wants room for eight tokens more; a prompt is one call.
  config.n_ctx = static_cast<int>(parse_tokens(options.tokens).size()) + config.n_predict + 8;
  if (const bmoe::ValidationResult valid = bmoe::validate(config); !valid)
    throw std::runtime_error(valid.error);
  return options;
}

void run(const Options& options) {
  llama_log_set(
      [](ggml_log_level level, const char* text, void*) {
        if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
      },
      nullptr);
  const Counters start = now();
  std::string error;
  const auto session = bmoe::Session::open(bmoe::session_config_from(options.config), error);
  if (session == nullptr) throw std::runtime_error(options.config.model_path + ": " + error);

  const Counters opened = now();
  const std::size_t prompt = decoded.size();  // its place among the calls
  std::string ids;
  bmoe::GenerateRequest request;
  request.prompt = options.tokens;
  request.n_predict = options.config.n_predict;
  request.render_text = false;
  const bmoe::RunResult result = session->generate(request, [&](const bmoe::TokenMetrics& token) {
    ids += token.piece;
    if (decoded.back().seconds - decoded[prompt].seconds >= options.seconds) session->cancel();
  });
  if (!result) throw std::runtime_error(result.error);

  // The engine decodes each token that it gives, the last as well; the first comes from the prompt.
  const std::vector<int32_t> tokens = parse_tokens(ids);
  const std::size_t last = prompt + tokens.size() - 1;
  std::vector<double> token_s;
  for (std::size_t i = prompt; i < last; ++i) token_s.push_back(decoded[i + 1].seconds - decoded[i].seconds);
  std::printf(
      "{\"load\": %s, \"prefill\": [%s], \"decode\": %s, \"token_s\": [%s], \"tokens\": [%s], \"engine\": "
      "\"BigMoeOnEdge %s\", \"cache_hit_percent\": %.1f, \"cache_mib\": %.0f, \"cache_resident_mib\": %.0f, "
      "\"token_demand_mib\": %.1f, \"system\": \"%s\"}\n",
      json_of(start, opened).c_str(), json_of(opened, decoded[prompt]).c_str(),
      json_of(decoded[prompt], decoded[last]).c_str(), joined(token_s).c_str(), joined(tokens).c_str(),
      bmoe::version(), result.summary.cache_hit_pct, result.summary.cache_budget_mib,
      result.summary.cache_resident_mib, result.summary.token_demand_mib, llama_print_system_info());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse(argc, argv));
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bigmoe-runner: %s\n", e.what());
    return 1;
  }
}
