#include "serve/metric_table.h"

#include <string>

#include "base/error.h"

namespace sluice::serve {
namespace {

using enum MetricKind;

// Those of vLLM, so that dashboards port by exchanging the prefix.
constexpr double kFirstTokenBounds[] = {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5,  .75,
                                        1,    2.5,  5,   7.5, 10,  20,  40,  80, 160, 640, 2560};
constexpr double kLatencyBounds[] = {.3, .5, .8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                     30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
constexpr double kTokenGapBounds[] = {.01, .025, .05, .075, .1,  .15, .2, .3, .4, .5,
                                      .75, 1,    2.5, 5,    7.5, 10,  20, 40, 80};
constexpr double kTokenBounds[] = {1,    2,    5,    10,    20,    50,    100,    200,    500,
                                   1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000};
constexpr double kSequenceBounds[] = {1, 2, 4, 8, 16, 32, 64};
constexpr double kShortBounds[] = {.00005, .0001, .00025, .0005, .001, .0025, .005,
                                   .01,    .025,  .05,    .1,    .25,  .5,    1};

constexpr MetricRow kRows[] = {
    {"num_requests_running", kGauge, "Sequences that are computed."},
    {"num_requests_waiting", kGauge, "Sequences that wait in the queue."},
    {"num_requests_stalled", kGauge, "Running sequences that wait for room in the KV pool."},
    {"request_success_total", kCounter, "Answers that ended as they should.", "finished_reason"},
    {"request_failure_total", kCounter, "Requests that did not end so.", "reason"},
    {"http_requests_total", kCounter, "Answers of the HTTP server.", "path code"},
    {"http_connections", kGauge, "Open connections."},
    {"http_bytes_sent_total", kCounter, "Bytes that the HTTP server has sent."},
    {"prompt_tokens_total", kCounter, "Tokens of prompts, reused ones too."},
    {"generation_tokens_total", kCounter, "Tokens of answers."},
    {"reasoning_tokens_total", kCounter, "Tokens of answers that were reasoning."},
    {"prefix_cache_queries_total", kCounter, "Tokens of prompts that were looked for among earlier ones."},
    {"prefix_cache_hits_total", kCounter, "Tokens of prompts that were found there."},
    {"kv_cache_usage_perc", kGauge, "Share of the KV pool that sequences use, 0 to 1."},
    {"kv_blocks", kGauge, "Blocks of the KV pool.", "state"},
    {"time_to_first_token_seconds",
     kHistogram,
     "From the last byte of a body to the first token.",
     {},
     kFirstTokenBounds},
    {"inter_token_latency_seconds",
     kHistogram,
     "From one token of an answer to the next.",
     {},
     kTokenGapBounds},
    {"e2e_request_latency_seconds",
     kHistogram,
     "From the last byte of a body to the end of the answer.",
     {},
     kLatencyBounds},
    {"request_queue_time_seconds",
     kHistogram,
     "Time that sequences waited in the queue.",
     {},
     kLatencyBounds},
    {"request_prefill_time_seconds", kHistogram, "From admission to the first token.", {}, kLatencyBounds},
    {"request_decode_time_seconds", kHistogram, "From the first token to the last.", {}, kLatencyBounds},
    {"request_prompt_tokens", kHistogram, "Tokens of a sequence's prompt.", {}, kTokenBounds},
    {"request_generation_tokens", kHistogram, "Tokens of a sequence's answer.", {}, kTokenBounds},
    {"iteration_tokens_total", kHistogram, "Tokens of a pass.", {}, kTokenBounds},
    {"passes_total", kCounter, "Walks through all layers.", "kind"},
    {"pass_seconds_total", kCounter, "Time of passes, by what it went into.", "kind part"},
    {"spec_decode_num_drafts_total", kCounter, "Passes of a sequence that had drafts."},
    {"spec_decode_num_draft_tokens_total", kCounter, "Tokens that were computed before they were drawn."},
    {"spec_decode_num_accepted_tokens_total", kCounter, "Drafted tokens that were drawn then."},
    {"batch_sequences", kHistogram, "Sequences of a pass.", {}, kSequenceBounds},
    {"expert_demand_total", kCounter, "Distinct experts of each sequence, summed over events.",
     "phase layer"},
    {"expert_accesses_total", kCounter, "Distinct experts of events.", "phase layer"},
    {"expert_hits_total", kCounter, "Experts of events that needed no read.", "phase layer"},
    {"expert_misses_total", kCounter, "Experts of events that were read on demand.", "phase layer"},
    {"expert_prefetch_total", kCounter, "Experts that were read ahead, by what became of them.", "result"},
    {"io_bytes_total", kCounter, "Bytes that were read.", "kind"},
    {"io_reads_total", kCounter, "Reads."},
    {"io_busy_seconds_total", kCounter, "Time in which reads were queued or in flight."},
    {"io_read_seconds", kHistogram, "Time of a read.", {}, kShortBounds},
    {"experts_resident", kGauge, "Experts in memory.", "state tier"},
    {"expert_resident_bytes", kGauge, "Bytes of experts in memory.", "state tier"},
    {"link_bytes_total", kCounter, "Bytes on the link to the device.", "class"},
    {"link_busy_seconds_total", kCounter, "Time in which the link was busy."},
    {"device_busy_seconds_total", kCounter, "Time in which the device computed."},
    {"memory_budget_bytes", kGauge, "The memory budget.", "tier"},
    {"memory_used_bytes", kGauge, "Memory in use, by account.", "account tier"},
    {"memory_peak_bytes", kGauge, "Most memory that was in use, by account.", "account tier"},
    {"grammar_mask_seconds", kHistogram, "Time to make a mask of allowed tokens.", {}, kShortBounds},
    {"template_seconds", kHistogram, "Time to render a chat template.", {}, kShortBounds},
    {"tokenize_seconds", kHistogram, "Time to tokenize a prompt.", {}, kShortBounds},
    {"grammar_mask_cache_hits_total", kCounter, "Masks that were found."},
    {"grammar_mask_cache_misses_total", kCounter, "Masks that were made."},
    {"build_info", kGauge, "1; the labels say what runs.", "version isa math kv fingerprint"},
    {"process_start_time_seconds", kGauge, "When the process began, in seconds since 1970."},
    {"process_cpu_seconds_total", kCounter, "Processor time of the process."},
    {"process_resident_memory_bytes", kGauge, "Resident memory of the process."},
    {"process_open_fds", kGauge, "Open file descriptors of the process."},
};

}  // namespace

std::span<const MetricRow> metric_rows() { return kRows; }

const MetricRow& metric_row(std::string_view name) {
  for (const MetricRow& row : kRows)
    if (row.name == name) return row;
  SLUICE_CHECK(false, "no metric is named " + std::string(name));
  return kRows[0];
}

}  // namespace sluice::serve
