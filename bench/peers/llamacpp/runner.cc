// llama-runner: runs llama.cpp on given token ids and prints figures of each phase as JSON. Like llama-bench,
// but it also prints the tokens, so that answers can be compared, and the bytes read and CPU time of decoding
// alone.
//
//   llama-runner -m FILE.gguf --tokens 1,2,3 [--tokens …] [-n N] [-t THREADS]
//   [--load mmap|stored|none|dio] [--logits FILE] [--seconds S]
//
// Weights of some types are laid out anew while they load, in memory that the kernel cannot take back;
// `stored` is mmap without that (--no-repack of llama.cpp's own programs).
// Prompts are prefilled one after the other, each into an empty cache. The last prompt is continued greedily
// until N tokens exist or S seconds have passed. --logits writes the float32 logits of all positions of the
// last prompt. Loading is a phase of its own and never counts as prefill.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "../counters.h"
#include "llama.h"

namespace {

struct Options {
  std::string model, load = "mmap", logits;
  std::vector<std::vector<llama_token>> prompts;
  int predict = 1, threads = 0;
  double seconds = 1e9;  // no token begins later than this after the first
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) throw std::runtime_error(name + ": expected a value");
    const std::string value = argv[i + 1];
    if (name == "-m")
      options.model = value;
    else if (name == "--tokens")
      options.prompts.push_back(parse_tokens(value));
    else if (name == "-n")
      options.predict = std::stoi(value);
    else if (name == "-t")
      options.threads = std::stoi(value);
    else if (name == "--load")
      options.load = value;
    else if (name == "--seconds")
      options.seconds = std::stod(value);
    else if (name == "--logits")
      options.logits = value;
    else
      throw std::runtime_error(name + ": unknown; there are -m --tokens -n -t --load --seconds --logits");
  }
  if (options.model.empty() || options.prompts.empty())
    throw std::runtime_error("wanted: -m FILE.gguf --tokens 1,2,3");
  return options;
}

class Runner {
 public:
  explicit Runner(const Options& options) : options_(options) {
    llama_model_params of_model = llama_model_default_params();
    of_model.use_extra_bufts = options.load != "stored";
    of_model.load_mode = llama_load_mode_from_str(of_model.use_extra_bufts ? options.load.c_str() : "mmap");
    if (of_model.load_mode == LLAMA_LOAD_MODE_AUTO)
      throw std::runtime_error("--load: expected mmap, stored, none or dio, found " + options.load);
    of_model.n_gpu_layers = 0;
    model_ = llama_model_load_from_file(options.model.c_str(), of_model);
    if (model_ == nullptr) throw std::runtime_error(options.model + ": llama.cpp cannot load it");
    vocab_ = llama_vocab_n_tokens(llama_model_get_vocab(model_));

    std::size_t longest = 0;
    for (const auto& prompt : options.prompts) longest = std::max(longest, prompt.size());
    llama_context_params of_context = llama_context_default_params();
    of_context.n_ctx = static_cast<uint32_t>(longest + static_cast<std::size_t>(options.predict) + 1);
    of_context.n_batch =
        std::max(of_context.n_batch, static_cast<uint32_t>(longest));  // a prompt is one call
    if (options.threads > 0) of_context.n_threads = of_context.n_threads_batch = options.threads;
    context_ = llama_init_from_model(model_, of_context);
    if (context_ == nullptr) throw std::runtime_error(options.model + ": no context");
  }
  ~Runner() {
    llama_free(context_);
    llama_model_free(model_);
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  void prefill(const std::vector<llama_token>& prompt) {
    llama_memory_clear(llama_get_memory(context_), true);
    llama_batch batch = llama_batch_init(static_cast<int32_t>(prompt.size()), 0, 1);
    batch.n_tokens = static_cast<int32_t>(prompt.size());
    for (std::size_t i = 0; i < prompt.size(); ++i) {
      batch.token[i] = prompt[i];
      batch.pos[i] = static_cast<llama_pos>(i);
      batch.n_seq_id[i] = 1;
      batch.seq_id[i][0] = 0;
      batch.logits[i] = !options_.logits.empty() || i + 1 == prompt.size();
    }
    const int32_t failed = llama_decode(context_, batch);
    llama_batch_free(batch);
    if (failed != 0) throw std::runtime_error("prefill failed: " + std::to_string(failed));
    llama_synchronize(context_);
  }

  void decode(llama_token token) {
    if (const int32_t failed = llama_decode(context_, llama_batch_get_one(&token, 1)); failed != 0)
      throw std::runtime_error("decode failed: " + std::to_string(failed));
    llama_synchronize(context_);
  }

  // The likeliest token at the last position; ties go to the lower id.
  llama_token likeliest() const {
    const float* logits = llama_get_logits_ith(context_, -1);
    return static_cast<llama_token>(std::max_element(logits, logits + vocab_) - logits);
  }

  void write_logits(const std::string& path, std::size_t positions) const {
    std::ofstream out(path, std::ios::binary);
    for (std::size_t i = 0; i < positions; ++i)
      out.write(reinterpret_cast<const char*>(llama_get_logits_ith(context_, static_cast<int32_t>(i))),
                static_cast<std::streamsize>(sizeof(float)) * vocab_);
    if (!out.flush()) throw std::runtime_error(path + ": cannot write");
  }

 private:
  const Options& options_;
  llama_model* model_ = nullptr;
  llama_context* context_ = nullptr;
  int32_t vocab_ = 0;
};

void run(const Options& options) {
  llama_backend_init();
  llama_log_set(
      [](ggml_log_level level, const char* text, void*) {
        if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
      },
      nullptr);
  const Counters start = now();
  Runner runner(options);
  Counters before = now();
  const std::string load = json_of(start, before);

  std::vector<std::string> prefills;
  for (const auto& prompt : options.prompts) {
    before = now();
    runner.prefill(prompt);
    prefills.push_back(json_of(before, now()));
  }
  if (!options.logits.empty()) runner.write_logits(options.logits, options.prompts.back().size());

  std::vector<llama_token> tokens;
  std::vector<double> token_s;
  before = now();
  Counters after = before;
  if (options.predict > 0) tokens.push_back(runner.likeliest());
  while (static_cast<int>(tokens.size()) < options.predict &&
         after.seconds - before.seconds < options.seconds) {
    const double token_start = now().seconds;
    runner.decode(tokens.back());
    tokens.push_back(runner.likeliest());
    after = now();
    token_s.push_back(after.seconds - token_start);
  }
  std::printf(
      "{\"load\": %s, \"prefill\": [%s], \"decode\": %s, \"token_s\": [%s], \"tokens\": [%s], \"system\": "
      "\"%s\"}\n",
      load.c_str(), joined(prefills).c_str(), json_of(before, after).c_str(), joined(token_s).c_str(),
      joined(tokens).c_str(), llama_print_system_info());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse(argc, argv));
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "llama-runner: %s\n", e.what());
    return 1;
  }
}
