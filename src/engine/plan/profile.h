// Measured costs of this machine for one model: the input of plans and schedules. SPEC §1.3, §5.1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/json/json.h"
#include "engine/plan/device_profile.h"
#include "experts/schedule/expert_costs.h"

namespace sluice::fetch {
class ExpertStore;
}
namespace sluice::model {
struct Model;
}
namespace sluice::store {
class Checkpoint;
}

namespace sluice::engine {

// What a profile was measured for. Costs of another model, store or machine are useless.
struct ProfiledModel {
  std::string architecture, codec;
  std::uint32_t layers = 0, experts = 0, top_k = 0;  // sparse layers, routed experts a layer
  std::uint32_t tensors = 0, chunks = 0;  // an expert's tensors; a tensor's exponent chunks (0: stored whole)
  Bytes full = 0, sm = 0, exp = 0;        // sizes of an expert in memory, the largest of all
  bool operator==(const ProfiledModel&) const = default;
};
struct ProfiledMachine {
  std::string cpu, isa, io;
  std::uint32_t threads = 0;
  bool operator==(const ProfiledMachine&) const = default;
};

struct Profile {
  ProfiledModel model;
  ProfiledMachine machine;
  Measured u;      // reading the sign+mantissa plane of one tensor (or a whole one), several in flight
  Measured v;      // reading one exponent chunk, several in flight
  Measured c;      // decoding one exponent chunk on one thread, all threads busy
  Measured merge;  // merging one tensor on one thread, all threads busy
  Measured p;      // computing one expert for one token
  TimesOfTokens p_of_tokens;  // the same for more tokens
  // Computing one expert in the view `packed` for one token, if it has that view.
  std::optional<Measured> p_packed;
  // What reading one expert by itself takes longer than its share of many: the disk's answer to a question.
  Measured latency;  // 0 in profiles of before it was measured
  Measured rest;     // one decode step without its routed experts: attention, dense layers, head

  // Costs of one device, if the profile was measured with one; a profile of version 1 has none.
  std::optional<DeviceProfile> device;

  std::vector<double> ranks;  // f of SPEC §1.8 from recorded routing of one sequence; may be empty
  // What was played into the model whose routing that is (RoutingTrace::played()); empty: its own.
  std::string played = {};

  experts::ExpertCosts costs() const;  // in the form that schedulers take
  // With those of the device, if there is one, and the host's beside it.
  experts::ExpertCosts device_costs() const;
};

ProfiledModel profiled_model(const store::Checkpoint& checkpoint, const model::Model& model,
                             const fetch::ExpertStore& experts);

Json to_json(const Profile& profile);
// Error(kInvalid) naming `name` and the field if one is missing, of another version, negative or not finite.
Profile profile_from_json(const Json& json, const std::string& name);
// The same of a file. Error(kNotFound), (kIo), (kInvalid) likewise, and for a file that is no JSON.
Profile read_profile(const std::string& path);
// Whether the costs were measured for this model, store and machine.
bool fits(const Profile& profile, const ProfiledModel& model, const ProfiledMachine& machine);
// Error(kInvalid) that says what differs, for a profile of another model, store or machine.
void check_profile(const Profile& profile, const ProfiledModel& model, const ProfiledMachine& machine,
                   const std::string& name);

}  // namespace sluice::engine
