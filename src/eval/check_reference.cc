#include "eval/check_reference.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"
#include "model/architecture.h"
#include "model/config.h"
#include "store/checkpoint.h"

namespace sluice::eval {
namespace {

constexpr const char* kFix = "give the model that it was packed from";

}  // namespace

void check_reference(const model::Model& model, const store::Checkpoint& reference,
                     const model::Model& reference_model) {
  if (reference.slices())
    throw Error(ErrorKind::kInvalid, "the reference is itself rounded")
        .in(reference.path())
        .expected("the model that the store was packed from, as a directory or a store without slices")
        .found("a store of family sliced")
        .fix(kFix);
  const auto refuse = [&](const char* what, const std::string& expected, const std::string& found) {
    if (expected == found) return;
    throw Error(ErrorKind::kInvalid, fmt::format("the reference has another {} than the model", what))
        .in(reference.path())
        .expected(expected)
        .found(found)
        .fix(kFix);
  };
  const model::ModelConfig &a = model.config, &b = reference_model.config;
  refuse("architecture", a.model_type, b.model_type);
  refuse("vocabulary", std::to_string(a.vocab), std::to_string(b.vocab));
  refuse("number of layers", std::to_string(a.layers), std::to_string(b.layers));
  refuse("number of experts", std::to_string(a.moe.experts), std::to_string(b.moe.experts));
}

void check_reference_identity(std::uint64_t model, std::uint64_t reference, const std::string& path) {
  if (model == reference) return;
  throw Error(ErrorKind::kInvalid, "the reference is not the model that the store was packed from")
      .in(path)
      .expected("tensors and routers of identity " + hex64(model))
      .found(hex64(reference))
      .fix(kFix);
}

}  // namespace sluice::eval
