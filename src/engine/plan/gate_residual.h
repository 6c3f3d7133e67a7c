// The residual of a model's gate inputs as `sluice calibrate` has measured it, and how well predictors with
// and without it foretell routing. DALI (eq. 10, 11); SPEC §3.4. docs/store-format.md, 5.3.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "experts/prefetch/residual_vectors.h"
#include "store/sidecar/table_sidecar.h"

namespace sluice::engine {

inline constexpr store::TableKind kResidualTables{"residual", 1};
inline constexpr const char* kResidualSidecar = "residual";  // its name in a store

// A mean over windows of a text, and its standard error; infinite for fewer than two windows.
struct WindowMean {
  double mean = 0, error = 0;
};

// One sparse layer's prediction of the next one, or the mean over all layers. An accuracy is the share of the
// experts that a token chooses which are among the k that are predicted to be the likeliest.
struct PredictionQuality {
  WindowMean raw = {}, residual = {}, stream = {};   // accuracies
  WindowMean cosine_raw = {}, cosine_residual = {};  // cosines of the predicted and the true gate input
  WindowMean above_raw = {}, above_stream = {};      // what the accuracy of `residual` has more
};

struct GateResidual {
  std::uint64_t identity = 0;  // the model's (model_identity.h)
  std::string text_sha256;     // SHA-256 of the token ids as little-endian 32-bit numbers
  std::uint64_t tokens = 0;    // tokens of the text
  std::uint64_t averaged = 0;  // the mean is of this many, the first; the qualities are of the rest
  std::uint64_t window = 0, windows = 0;  // tokens of a window of the rest, and how many windows
  experts::ResidualVectors vectors;
  PredictionQuality all;                  // over layers
  std::vector<PredictionQuality> layers;  // (layers - 1)

  // Whether it foretells routing better than the residual stream does; ties are the stream's, which may
  // look twice.
  bool better_than_stream() const { return all.residual.mean > all.stream.mean; }
};

// {accuracy{}, cosine{}, …}: what `calibrate` prints, without the vectors.
Json to_json(const PredictionQuality& quality);

// The tables of the file: `description`, JSON without vectors, and `vectors`, floats. The bytes of a file of
// its own belong to no store.
struct ResidualTables {
  explicit ResidualTables(const GateResidual& residual);
  ResidualTables(const ResidualTables&) = delete;
  std::string file() const;
  std::span<const store::NamedTable> tables() const { return tables_; }

 private:
  std::string description_;
  std::vector<store::NamedTable> tables_;
};

// Error(kUnsupported) for another kind or version; (kCorrupt), (kInvalid) naming file and place.
GateResidual read_residual(const store::TableSidecar& tables);

// The shape of the model that it must be of. Error(kInvalid) with what `name` has and what it would need.
struct ResidualShape {
  std::uint64_t identity = 0;
  std::size_t layers = 0, width = 0;
};
void check_residual(const GateResidual& residual, const ResidualShape& model, const std::string& name);

}  // namespace sluice::engine
