#include <fmt/format.h>

#include <ctime>

#include "serve/json/body_value.h"
#include "serve/json/json_writer.h"
#include "serve/wire/endpoints.h"
#include "serve/wire/refusal_error.h"
#include "serve/wire/request_model.h"
#include "serve/wire/url_text.h"

namespace sluice::serve {
namespace {

std::string utc_text(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  gmtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string card_json(const ModelCard& card) {
  JsonWriter out;
  out.begin_object().member("id", card.id).member("object", "model").member("created", card.created);
  out.member("owned_by", "sluice").member("type", "model").member("display_name", card.id);
  out.member("created_at", utc_text(card.created)).key("meta");
  if (card.meta) {
    out.begin_object().member("n_ctx", card.meta->n_ctx).member("n_ctx_train", card.meta->n_ctx_train);
    out.member("n_params", card.meta->n_params).member("size", card.meta->size);
    out.member("n_experts", card.meta->n_experts).member("n_experts_used", card.meta->n_experts_used);
    out.member("architecture", card.meta->architecture).member("family", card.meta->family).end_object();
  } else {
    out.null();
  }
  return out.end_object().take();
}

}  // namespace

void answer_health(const Call& call) {
  const LoadState state = call.service.backend.state();
  if (state.phase == Phase::kDraining) throw draining_error();
  if (state.phase == Phase::kLoading) throw loading_error(state);
  if (call.request().query == "fail_on_no_slot=1") {
    bool idle = false;
    for (const SlotState& slot : call.service.backend.slots()) idle |= slot.kind == SlotState::Kind::kIdle;
    if (!idle) throw ApiError(503, "no_slot", "no place for a sequence is free").retry_after(1);
  }
  call.send_json(R"({"status":"ok"})");
}

void answer_models(const Call& call) {
  const ModelCard card = call.service.backend.card();
  const std::string json = card_json(card);
  JsonWriter out;
  out.begin_object().member("object", "list");
  out.key("data").begin_array().raw(json).end_array().key("models").begin_array().raw(json).end_array();
  out.member("has_more", false).member("first_id", card.id).member("last_id", card.id).end_object();
  call.send_json(out.take());
}

void answer_model(const Call& call) {
  const ModelCard card = call.service.backend.card();
  const std::string asked = unescaped(call.argument);
  if (asked != card.id) throw unknown_model(asked);
  call.send_json(card_json(card));
}

ApiError unknown_model(const std::string& asked) {
  return ApiError(404, "model_not_found", "the model " + shown(BodyValue(asked)) + " is not served here")
      .about("model");
}

std::string answered_model(const std::string& asked, const Service& service) {
  const std::string id = service.backend.card().id;
  if (asked.empty()) return id;
  if (service.options.strict_model && asked != id) throw unknown_model(asked);
  return asked;
}

std::int64_t now_seconds() { return std::time(nullptr); }

}  // namespace sluice::serve
