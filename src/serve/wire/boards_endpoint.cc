#include <nettle/base64.h>

#include <bit>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "serve/json/json_writer.h"
#include "serve/wire/endpoints.h"
#include "serve/wire/sampling_json.h"

namespace sluice::serve {
namespace {

std::string base64(std::span<const std::uint8_t> bytes) {
  std::string text(BASE64_ENCODE_RAW_LENGTH(bytes.size()), '\0');
  base64_encode_raw(text.data(), bytes.size(), bytes.data());
  return text;
}

// Little-endian, 4 bytes each.
std::string base64_of_counts(const std::vector<std::uint32_t>& counts) {
  std::vector<std::uint8_t> bytes;
  for (const std::uint32_t count : counts)
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::uint8_t>(count >> shift));
  return base64(bytes);
}

void write_sizes(JsonWriter& out, const std::vector<std::pair<std::string, std::uint64_t>>& sizes) {
  for (const auto& [name, bytes] : sizes) out.member(name, bytes);
}

std::string_view state_word(SlotState::Kind kind) {
  switch (kind) {
    case SlotState::Kind::kIdle:
      return "idle";
    case SlotState::Kind::kQueued:
      return "queued";
    case SlotState::Kind::kPrefill:
      return "prefill";
    case SlotState::Kind::kDecode:
      return "decode";
    case SlotState::Kind::kStalled:
      return "stalled";
  }
  return "idle";
}

std::string requests_json(const std::vector<SlotState>& slots) {
  JsonWriter out;
  out.begin_array();
  for (const SlotState& slot : slots) {
    if (slot.kind == SlotState::Kind::kIdle) continue;
    std::string id = std::to_string(slot.task);
    if (slot.sequence > 0) id += '.' + std::to_string(slot.sequence);
    out.begin_object().member("id", id).member("state", state_word(slot.kind)).member("prompt", slot.prompt);
    out.member("cached", slot.cached).member("done", slot.prefilled).member("generated", slot.decoded);
    out.member("max", slot.max_tokens.value_or(0)).end_object();
  }
  return out.end_array().take();
}

// One who watches.
class Watcher : public std::enable_shared_from_this<Watcher> {
 public:
  static void start(const Call& call) {
    const auto self = std::make_shared<Watcher>(call);
    http::Response head;
    head.content_type = "text/event-stream; charset=utf-8";
    head.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
    call.writer->begin(head);
    if (call.request().method == "HEAD") return call.writer->end();
    call.writer->write(self->greeting());
    self->later();
  }

  explicit Watcher(const Call& call) : call_(call), sequence_(call.service.board.sequence()) {
    call_.service.board.watch(call_.service.backend, 1);
  }
  ~Watcher() { call_.service.board.watch(call_.service.backend, -1); }

 private:
  static void put(std::string_view name, std::string_view json, std::string& out) {
    out += "event: ";
    out += name;
    out += "\ndata: ";
    out += json;
    out += "\n\n";
  }

  std::string greeting() {
    const Backend& backend = call_.service.backend;
    const std::shared_ptr<const Served> served = backend.served();
    JsonWriter hello;
    hello.begin_object().member("version", call_.service.options.version).member("model", backend.card().id);
    hello.member("chat", served->chat != nullptr).key("limits").begin_object();
    hello.member("n_ctx", served->context)
        .member("parallel", served->parallel)
        .member("queue", served->queue);
    hello.end_object().end_object();
    std::string out;
    put("hello", hello.take(), out);
    put("plan", backend.plan_json(), out);
    put("stats", backend.stats_json(), out);
    requests_ = requests_json(backend.slots());
    put("requests", requests_, out);
    return out;
  }

  void later() {
    call_.writer->after(BoardFeed::kPeriod, [self = shared_from_this()] { self->tell(); });
  }

  void tell() {
    Service& service = call_.service;
    service.board.look(service.backend);
    std::string out;
    for (const BoardFeed::Change& change : service.board.since(sequence_)) {
      put("experts", change.json, out);
      sequence_ = change.sequence;
    }
    constexpr unsigned kStatsPeriods = 5, kRequestsPeriods = 2;
    if (++periods_ % kStatsPeriods == 0) put("stats", service.backend.stats_json(), out);
    if (periods_ % kRequestsPeriods == 0) {
      std::string requests = requests_json(service.backend.slots());
      if (requests != requests_) put("requests", requests, out);
      requests_ = std::move(requests);
    }
    call_.writer->write(out);
    if (!call_.writer->gone()) later();
  }

  const Call call_;
  std::uint64_t sequence_;
  unsigned periods_ = 0;
  std::string requests_;
};

}  // namespace

void answer_experts(const Call& call) {
  need_loaded(call.service);
  const std::uint64_t sequence = call.service.board.sequence();
  const ExpertBoard board = call.service.backend.experts();
  JsonWriter out;
  out.begin_object().member("layers", board.layers).member("experts", board.experts);
  out.key("layer_ids").begin_array();
  for (const std::size_t id : board.layer_ids) out.natural(id);
  out.end_array().key("tiers").begin_array().string("host");
  if (board.device) out.string("device");
  out.end_array().member("states", board.states).member("sequence", sequence);
  out.member("state", base64(board.state)).member("heat", base64(board.heat));
  out.member("uses", base64_of_counts(board.uses)).key("expert_bytes").begin_object();
  write_sizes(out, board.expert_bytes);
  if (board.device) {
    out.key("device").begin_object();
    write_sizes(out, board.device_bytes);
    out.end_object();
  }
  call.send_json(out.end_object().end_object().take());
}

void answer_plan(const Call& call) {
  need_loaded(call.service);
  call.send_json(call.service.backend.plan_json());
}

void answer_slots(const Call& call) {
  const std::shared_ptr<const Served> served = need_loaded(call.service);
  JsonWriter out;
  out.begin_array();
  for (const SlotState& slot : call.service.backend.slots()) {
    if (slot.kind == SlotState::Kind::kQueued) continue;
    out.begin_object().member("id", slot.id).member("id_task", slot.task).member("n_ctx", served->context);
    out.member("is_processing", slot.kind != SlotState::Kind::kIdle).member("state", state_word(slot.kind));
    out.member("n_prompt", slot.prompt).member("n_cached", slot.cached).member("n_decoded", slot.decoded);
    out.key("params");
    const bool idle = slot.kind == SlotState::Kind::kIdle;  // what a request that says nothing would get
    write_sampling(out, idle ? served->defaults.sampling : slot.sampling, slot.max_tokens);
    out.end_object();
  }
  call.send_json(out.end_array().take());
}

void answer_events(const Call& call) {
  constexpr std::size_t kMostWatchers = 16;
  need_loaded(call.service);
  if (call.service.board.watchers() >= kMostWatchers)
    throw ApiError(429, "rate_limit_exceeded", "too many watch already: the server takes 16").retry_after(5);
  Watcher::start(call);
}

}  // namespace sluice::serve
