// Checks that a reference is the exact model from which another model was made.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::model {
struct Model;
}
namespace sluice::store {
class Checkpoint;
}

namespace sluice::eval {

// Compares their files before either is loaded. Error(kInvalid) for a reference that is rounded, or has
// another shape than `model`.
void check_reference(const model::Model& model, const store::Checkpoint& reference,
                     const model::Model& reference_model);
// Compares the engine::model_identity of both. Error(kInvalid) naming the reference, at `path`.
void check_reference_identity(std::uint64_t model, std::uint64_t reference, const std::string& path);

}  // namespace sluice::eval
