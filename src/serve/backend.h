// What the server asks of the part that answers: a model on its own thread, or a script in tests. It knows no
// HTTP and no API. Functions that several threads call say so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "serve/answer_event.h"
#include "serve/event_queue.h"
#include "serve/metric_set.h"
#include "serve/text_request.h"
#include "tokenizer/chat/calls/family.h"
#include "tokenizer/chat/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace sluice::serve {

enum class Phase { kLoading, kReady, kDraining };

struct LoadState {
  Phase phase = Phase::kLoading;
  double progress = 0;  // how far loading has come, 0 … 1
  std::string failure;  // loading failed for good; empty: it did not
};

struct CardMeta {
  std::uint64_t n_ctx = 0, n_ctx_train = 0, n_params = 0, size = 0, n_experts = 0, n_experts_used = 0;
  std::string architecture, family;
};

// What is known of the model; `meta` once it is loaded.
struct ModelCard {
  std::string id;
  std::int64_t created = 0;  // seconds since 1970: when config.json was last changed
  std::optional<CardMeta> meta;
};

// What a model that is loaded offers; it does not change while the server runs.
struct Served {
  std::size_t context = 0;     // most tokens of a prompt with its answer
  std::size_t vocabulary = 0;  // rows of the model's, which may be more than its tokenizer has tokens
  std::size_t parallel = 1;    // sequences that run at a time
  std::size_t queue = 64;      // requests that may wait
  SamplingDefaults defaults;
  std::string fingerprint;           // "sluice-0.3-8c1f2ab4"
  std::optional<std::string> lossy;  // JSON of the object `sluice.lossy`, in modes that are not exact

  // Null: the model has none. Both outlive the backend's last answer.
  const tokenizer::Tokenizer* tokenizer = nullptr;
  const tokenizer::ChatTemplate* chat = nullptr;
  std::string chat_failure;               // why `chat` is null though there is a template
  tokenizer::AnswerFormat answer_format;  // the format of a chat; without a family: no answer can be bound
  bool trust_special = false;             // control tokens in the text of a request count
  // The bytes that a token stands for, special ones by their content; thread-safe.
  std::function<std::string(tokenizer::TokenId)> bytes_of;
  std::string tokenizer_class;
  std::optional<std::string> bos_token, eos_token, pad_token;
};

using RequestId = std::uint64_t;

// Why a request is not taken.
struct Refusal {
  enum class Reason { kQueueFull, kTooLong, kDraining, kLoading, kInvalid };
  Reason reason = Reason::kInvalid;
  unsigned retry_after_s = 1;                  // for a full queue: when the next sequence is expected to end
  std::size_t prompt_tokens = 0, context = 0;  // with kTooLong; context: also what the KV pool can ever hold
  std::string message;  // with kInvalid; names settings by their marks (base/setting.h)
};

// Where a request stands that is not answered yet.
struct QueuePlace {
  std::size_t place = 0, of = 0;  // from 1; of all that wait
};

// The cells of the experts' picture, row-major: a row for each sparse layer.
struct ExpertBoard {
  std::size_t layers = 0, experts = 0;
  std::vector<std::size_t> layer_ids;  // layers of the model, for each row
  bool device = false;                 // a device holds experts, too
  std::string states;                  // letters of the states that occur: "FCSEM"
  // Host state in the low nibble (0 M, 1 E, 2 S, 3 C, 4 F, 5 msb, 6 msb+lsb), device state in the high one
  // (0 none, 1 full, 2 packed, 3 msb, 4 msb+lsb).
  std::vector<std::uint8_t> state;
  std::vector<std::uint8_t> heat;   // decayed use
  std::vector<std::uint32_t> uses;  // counts that only grow, so that a difference says what was used
  // Bytes of an expert in memory, by its state: {"F", 9437184}; of devices {"full", 9437184}.
  std::vector<std::pair<std::string, std::uint64_t>> expert_bytes, device_bytes;
};

// A place for a sequence, or a request that waits for one.
struct SlotState {
  enum class Kind { kIdle, kQueued, kPrefill, kDecode, kStalled };
  std::size_t id = 0;
  RequestId task = 0;
  std::size_t sequence = 0;  // a sequence of the request
  Kind kind = Kind::kIdle;
  std::size_t prompt = 0, prefilled = 0, cached = 0, decoded = 0;
  std::optional<std::size_t> max_tokens;
  Sampling sampling;
};

class Backend {
 public:
  virtual ~Backend() = default;

  // All may be called by any thread at any time, and none waits for a pass of the engine.
  virtual LoadState state() const = 0;
  virtual ModelCard card() const = 0;                        // also while the model loads
  virtual std::shared_ptr<const Served> served() const = 0;  // null while the model loads

  // Takes all sequences of one request, in order, or none. From then on events with their indices come into
  // `events`, and for each sequence last a Finish or a Failure. If EventQueue::push says false, the backend
  // cancels the request by itself.
  virtual std::variant<RequestId, Refusal> submit(std::vector<TextRequest> sequences,
                                                  std::shared_ptr<EventQueue> events) = 0;
  // Ends what is left of a request; nothing if it has ended.
  virtual void cancel(RequestId id) = 0;
  // Empty: it does not wait.
  virtual std::optional<QueuePlace> place_of(RequestId id) const = 0;

  // New and waiting requests are refused (Failure::Kind::kDraining), running ones go on. state() says so.
  virtual void begin_drain() = 0;

  // How many watch the boards below; without anybody nothing need be collected.
  virtual void set_watchers(std::size_t count) = 0;
  virtual ExpertBoard experts() const = 0;
  virtual std::vector<SlotState> slots() const = 0;  // `parallel` places, then the requests that wait
  virtual std::string plan_json() const = 0;   // one object: the plan of the running engine, and what is used
  virtual std::string stats_json() const = 0;  // one object, for the page
  // Adds its values to a page of metrics; names and labels are those of metric_table.cc. What ServiceMetrics
  // (serve/wire) and the process tell is left out.
  virtual void collect(MetricSet& metrics) const = 0;
};

}  // namespace sluice::serve
