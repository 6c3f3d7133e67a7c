#include "serve/engine/request_tickets.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "serve/engine/client_message.h"

namespace sluice::serve {
namespace {

engine::SamplerConfig sampler_of(const Sampling& sampling) {
  engine::SamplerConfig config;
  config.temperature = sampling.temperature;
  config.top_k = sampling.top_k;
  config.top_p = sampling.top_p;
  config.min_p = sampling.min_p;
  config.repetition_penalty = sampling.repetition_penalty;
  config.presence_penalty = sampling.presence_penalty;
  config.frequency_penalty = sampling.frequency_penalty;
  for (const auto& [id, bias] : sampling.logit_bias) config.bias.push_back({id, static_cast<float>(bias)});
  config.seed = sampling.seed;
  return config;
}

engine::BatchRequest batch_request(const TextRequest& request,
                                   const std::vector<tokenizer::TokenId>& chat_ends) {
  engine::BatchRequest batch;
  batch.prompt = request.prompt;
  batch.max_tokens = request.max_tokens;
  batch.sampler = sampler_of(request.sampling);
  batch.ignore_eos = request.sampling.ignore_eos;
  if (request.parsing) batch.ends = chat_ends;
  batch.cache_prompt = request.cache_prompt;
  batch.logprobs = request.logprobs;
  if (request.prompt_logprobs) batch.prompt_logprobs = 1;
  return batch;
}

}  // namespace

bool RequestTickets::Ticket::waits() const {
  return std::ranges::none_of(sequences,
                              [](const Sequence& s) { return s.stream->admitted() || s.stream->ended(); });
}

bool RequestTickets::Ticket::ended() const {
  return std::ranges::all_of(sequences, [](const Sequence& s) { return s.stream->ended(); });
}

RequestTickets::RequestTickets(engine::Batcher& batcher, const AnswerReading& reading,
                               const std::vector<tokenizer::TokenId>& chat_ends, std::size_t parallel,
                               engine::GrammarMasks* masks)
    : batcher_(batcher), reading_(reading), chat_ends_(chat_ends), parallel_(parallel), masks_(masks) {}

void RequestTickets::submit(NewRequest request) {
  Ticket& ticket = tickets_.emplace_back(Ticket{request.id, {}});
  for (std::size_t i = 0; i < request.sequences.size(); ++i) {
    const TextRequest& text = request.sequences[i];
    Sequence& sequence = ticket.sequences.emplace_back();
    sequence.state = {.task = request.id,
                      .prompt = text.prompt.size(),
                      .max_tokens = text.max_tokens,
                      .sampling = text.sampling};
    sequence.stream =
        std::make_unique<AnswerStream>(reading_, text, i, request.events, request.id * 8191 + i);
    try {
      engine::BatchRequest batch = batch_request(text, chat_ends_);
      if (text.grammar) batch.guide = std::make_shared<engine::AnswerGuide>(text.grammar, *masks_);
      sequence.id = batcher_.submit(std::move(batch), *sequence.stream);
    } catch (const Error& error) {
      sequence.stream->fail({Failure::Kind::kError, client_message(error)});
    }
  }
}

void RequestTickets::cancel(Ticket& ticket, Failure::Kind kind) {
  for (Sequence& sequence : ticket.sequences) {
    if (sequence.stream->ended()) continue;
    sequence.stream->end_as(kind);
    batcher_.cancel(sequence.id);
  }
}

void RequestTickets::cancel(RequestId id, Failure::Kind kind) {
  for (Ticket& ticket : tickets_)
    if (ticket.id == id) cancel(ticket, kind);
}

void RequestTickets::cancel_waiting(Failure::Kind kind) {
  for (Ticket& ticket : tickets_)
    if (ticket.waits()) cancel(ticket, kind);
}

void RequestTickets::cancel_all(Failure::Kind kind) {
  for (Ticket& ticket : tickets_) cancel(ticket, kind);
}

void RequestTickets::fail_all(const Failure& failure) {
  for (Ticket& ticket : tickets_)
    for (Sequence& sequence : ticket.sequences)
      if (!sequence.stream->ended()) sequence.stream->fail(failure);
  tickets_.clear();
}

void RequestTickets::tidy() {
  for (Ticket& ticket : tickets_)
    if (std::ranges::any_of(ticket.sequences, [](const Sequence& s) { return s.stream->lost(); }))
      cancel(ticket, Failure::Kind::kCancelled);
  std::erase_if(tickets_, [](const Ticket& ticket) { return ticket.ended(); });
}

DeskReport RequestTickets::report() const {
  DeskReport report;
  std::vector<SlotState> waiting;
  for (const Ticket& ticket : tickets_) {
    if (ticket.waits()) report.waiting.push_back(ticket.id);
    for (const Sequence& sequence : ticket.sequences) {
      const AnswerStream& stream = *sequence.stream;
      if (stream.ended()) continue;
      SlotState state = sequence.state;
      state.cached = stream.cached();
      state.prefilled = stream.prefilled();
      state.decoded = stream.generated();
      state.kind = !stream.admitted()        ? SlotState::Kind::kQueued
                   : stream.generated() == 0 ? SlotState::Kind::kPrefill
                                             : SlotState::Kind::kDecode;
      (stream.admitted() ? report.slots : waiting).push_back(std::move(state));
    }
  }
  report.free_places = parallel_ - std::min(parallel_, report.slots.size());
  report.slots.resize(std::max(parallel_, report.slots.size()));
  report.slots.insert(report.slots.end(), waiting.begin(), waiting.end());
  for (std::size_t i = 0; i < report.slots.size(); ++i) report.slots[i].id = i;
  return report;
}

}  // namespace sluice::serve
