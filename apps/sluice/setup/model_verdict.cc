#include "setup/model_verdict.h"

#include <string_view>
#include <variant>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/setting.h"
#include "model/architecture.h"
#include "store/source/gguf.h"
#include "store/source/open_checkpoint.h"

namespace sluice::app {
namespace {

// A number, or one a layer.
bool is_above_one(const Json& value) {
  if (value.is_number()) return value.get<double>() > 1;
  if (!value.is_array()) return false;
  for (const Json& each : value)
    if (is_above_one(each)) return true;
  return false;
}

// Fields that count experts, in the configuration or in a part of it, such as that of the text model.
bool counts_experts(const Json& config) {
  if (!config.is_object()) return false;
  for (const auto& [key, value] : config.items())
    if ((key.find("expert") != key.npos && is_above_one(value)) || counts_experts(value)) return true;
  return false;
}

struct IsAboveOne {
  bool operator()(bool) const { return false; }
  bool operator()(const std::string&) const { return false; }
  template <class Number>
  bool operator()(const Number& number) const {
    return number > 1;
  }
  template <class Element>
  bool operator()(const std::vector<Element>& all) const {
    for (const Element& each : all)
      if ((*this)(each)) return true;
    return false;
  }
};

bool counts_experts(const store::GgufHeader& header) {
  for (const store::GgufKey& key : header.keys)
    if (key.name.ends_with(".expert_count") && std::visit(IsAboveOne(), key.value)) return true;
  return false;
}

// Whether what describes the model can be read, and counts no experts.
bool is_dense(const store::LocalModel& model) {
  try {
    if (model.form == store::LocalForm::kGguf)
      return !counts_experts(store::read_gguf(InputFile::open(model.path)));
    return !counts_experts(read_json_file(model.path + "/config.json"));
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string why_not_run(const store::LocalModel& model) {
  if (!model.fault.empty()) return model.fault;
  try {
    model::describe_model(*store::open_checkpoint(model.path));
    return "";
  } catch (const Error& error) {
    if (is_dense(model)) return "not a mixture of experts";
    const std::string& found = error.found_text();
    return with_names(error.message() + (found.empty() ? "" : ", found " + found));
  }
}

}  // namespace sluice::app
