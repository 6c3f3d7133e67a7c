// How tokens are drawn, as `/props` and `/slots` tell it.
#pragma once

#include <cstddef>
#include <optional>

#include "serve/json/json_writer.h"
#include "serve/text_request.h"

namespace sluice::serve {

inline void write_sampling(JsonWriter& out, const Sampling& sampling, std::optional<std::size_t> max_tokens) {
  out.begin_object().member("temperature", sampling.temperature).member("top_k", sampling.top_k);
  out.member("top_p", sampling.top_p).member("min_p", sampling.min_p);
  out.member("repeat_penalty", sampling.repetition_penalty);
  out.member("presence_penalty", sampling.presence_penalty);
  out.member("frequency_penalty", sampling.frequency_penalty).member("ignore_eos", sampling.ignore_eos);
  out.member("max_tokens", max_tokens).end_object();
}

}  // namespace sluice::serve
