// The settings of a user: what a flag of the command line says, or a field of a request. Libraries and
// commands name a setting by its constant, never by its flag, so that an error reads well wherever it is
// shown.
//
//   throw Error(ErrorKind::kUsage, "unknown arithmetic")
//       .in(Setting::kMath)
//       .fix("leave " + Setting::kMath + " out for auto");
//
// Within a text a setting is a mark. with_names() puts names from a table in the place of marks: an Error
// shows flags (Error::what()) or, to a server's client, fields (error_text.h). Foreign text (paths, prompts,
// what files hold) cannot hold a mark: each process draws a word at random that all its marks share. To add a
// setting, add its constant here (in the class, and below it with the next number), count it in kSettings,
// and add its row in setting_names.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

class Setting {
 public:
  static const Setting kMemory, kThreads, kIsa, kIo, kDisk, kSeed, kJson, kQuiet, kHelp, kVersion, kPrompt,
      kFile, kTokens, kPredict, kContext, kChunk, kBatch, kTemperature, kTopK, kTopP, kMinP, kRepeatPenalty,
      kStop, kIgnoreEos, kPreset, kRouter, kCache, kCacheScope, kCapacity, kScheduler, kPrefetch, kPlacement,
      kProfile, kKeep, kDense, kMath, kKv, kActivations, kMaxLoss, kPrecision, kLowView, kCritical,
      kCriticalCount, kTheta, kLsbMiss, kLsbReserve, kWarmup, kKappa, kRho, kConstraint, kMissRate, kLambda,
      kEta, kCumsumP, kTopJ, kOut, kOutput, kDecisions, kShowExperts, kMachine, kTrace, kAppend, kLimit,
      kSpecial, kNoSpecial, kEncoderTokens, kTask, kData, kCtx, kStride, kPrefill, kState, kReference,
      kReferenceMemory, kWhole, kRuns, kCodec, kLevel, kChunks, kSlices, kQuantiser, kExclude, kWorkers,
      kFull, kTensors, kRanksOf, kRepeats, kLayers, kExperts, kDtype, kShardSize, kEmbeddingScale,
      kEmbeddingCommon, kScope, kPools, kExpertBytes, kWindow, kDelta, kDemote, kHalfLife, kMemoryExperts,
      kShape, kModel, kBudget, kQuick, kAhead, kGateInputs, kRoutingLayers, kRouting, kDeviceMemory,
      kDeviceSlots, kDeviceCache, kWSize, kUSize, kDevice, kPrefetchSize, kResidual, kDenseOn, kDeviceKeep,
      kTiers, kAlpha, kMerge, kRenorm, kPlacementPrefill, kLink, kResident, kAdmit, kFormat, kChatTemplate,
      kSystem, kThink, kNoHistory, kSimpleIo, kNoGenerationPrompt, kSet, kCaps, kHost, kPort, kUnix, kApiKey,
      kApiKeyFile, kNoAuth, kAllowedHost, kCorsOrigin, kAlias, kStrictModel, kParallel, kKvTokens,
      kDecodeShare, kQueue, kSsePing, kDrain, kLogJson, kLogPrompts, kUiDir, kNoUi, kTrustSpecial,
      kToolFormat, kKeepBillingHeader, kPresencePenalty, kFrequencyPenalty, kLogitBias, kChat, kDeviceMath,
      kDraft, kHours, kTokenizer, kTimedBits;

  static constexpr char kMarkBegin = '\x1e';  // a control character, which no text of ours has otherwise

  operator std::string_view() const;  // the mark, valid while the process runs
  constexpr std::size_t index() const { return index_; }
  friend constexpr bool operator==(const Setting& a, const Setting& b) { return a.index_ == b.index_; }

 private:
  constexpr explicit Setting(std::size_t index) : index_(index) {}

  std::size_t index_;  // the index of its row in the table
};

inline constexpr Setting Setting::kMemory{0};
inline constexpr Setting Setting::kThreads{1};
inline constexpr Setting Setting::kIsa{2};
inline constexpr Setting Setting::kIo{3};
inline constexpr Setting Setting::kDisk{4};
inline constexpr Setting Setting::kSeed{5};
inline constexpr Setting Setting::kJson{6};
inline constexpr Setting Setting::kQuiet{7};
inline constexpr Setting Setting::kHelp{8};
inline constexpr Setting Setting::kVersion{9};
inline constexpr Setting Setting::kPrompt{10};
inline constexpr Setting Setting::kFile{11};
inline constexpr Setting Setting::kTokens{12};
inline constexpr Setting Setting::kPredict{13};
inline constexpr Setting Setting::kContext{14};
inline constexpr Setting Setting::kChunk{15};
inline constexpr Setting Setting::kBatch{16};
inline constexpr Setting Setting::kTemperature{17};
inline constexpr Setting Setting::kTopK{18};
inline constexpr Setting Setting::kTopP{19};
inline constexpr Setting Setting::kMinP{20};
inline constexpr Setting Setting::kRepeatPenalty{21};
inline constexpr Setting Setting::kStop{22};
inline constexpr Setting Setting::kIgnoreEos{23};
inline constexpr Setting Setting::kPreset{24};
inline constexpr Setting Setting::kRouter{25};
inline constexpr Setting Setting::kCache{26};
inline constexpr Setting Setting::kCacheScope{27};
inline constexpr Setting Setting::kCapacity{28};
inline constexpr Setting Setting::kScheduler{29};
inline constexpr Setting Setting::kPrefetch{30};
inline constexpr Setting Setting::kPlacement{31};
inline constexpr Setting Setting::kProfile{32};
inline constexpr Setting Setting::kKeep{33};
inline constexpr Setting Setting::kDense{34};
inline constexpr Setting Setting::kMath{35};
inline constexpr Setting Setting::kKv{36};
inline constexpr Setting Setting::kActivations{37};
inline constexpr Setting Setting::kMaxLoss{38};
inline constexpr Setting Setting::kPrecision{39};
inline constexpr Setting Setting::kLowView{40};
inline constexpr Setting Setting::kCritical{41};
inline constexpr Setting Setting::kCriticalCount{42};
inline constexpr Setting Setting::kTheta{43};
inline constexpr Setting Setting::kLsbMiss{44};
inline constexpr Setting Setting::kLsbReserve{45};
inline constexpr Setting Setting::kWarmup{46};
inline constexpr Setting Setting::kKappa{47};
inline constexpr Setting Setting::kRho{48};
inline constexpr Setting Setting::kConstraint{49};
inline constexpr Setting Setting::kMissRate{50};
inline constexpr Setting Setting::kLambda{51};
inline constexpr Setting Setting::kEta{52};
inline constexpr Setting Setting::kCumsumP{53};
inline constexpr Setting Setting::kTopJ{54};
inline constexpr Setting Setting::kOut{55};
inline constexpr Setting Setting::kOutput{56};
inline constexpr Setting Setting::kDecisions{57};
inline constexpr Setting Setting::kShowExperts{58};
inline constexpr Setting Setting::kMachine{59};
inline constexpr Setting Setting::kTrace{60};
inline constexpr Setting Setting::kAppend{61};
inline constexpr Setting Setting::kLimit{62};
inline constexpr Setting Setting::kSpecial{63};
inline constexpr Setting Setting::kNoSpecial{64};
inline constexpr Setting Setting::kEncoderTokens{65};
inline constexpr Setting Setting::kTask{66};
inline constexpr Setting Setting::kData{67};
inline constexpr Setting Setting::kCtx{68};
inline constexpr Setting Setting::kStride{69};
inline constexpr Setting Setting::kPrefill{70};
inline constexpr Setting Setting::kState{71};
inline constexpr Setting Setting::kReference{72};
inline constexpr Setting Setting::kReferenceMemory{73};
inline constexpr Setting Setting::kWhole{74};
inline constexpr Setting Setting::kRuns{75};
inline constexpr Setting Setting::kCodec{76};
inline constexpr Setting Setting::kLevel{77};
inline constexpr Setting Setting::kChunks{78};
inline constexpr Setting Setting::kSlices{79};
inline constexpr Setting Setting::kQuantiser{80};
inline constexpr Setting Setting::kExclude{81};
inline constexpr Setting Setting::kWorkers{82};
inline constexpr Setting Setting::kFull{83};
inline constexpr Setting Setting::kTensors{84};
inline constexpr Setting Setting::kRanksOf{85};
inline constexpr Setting Setting::kRepeats{86};
inline constexpr Setting Setting::kLayers{87};
inline constexpr Setting Setting::kExperts{88};
inline constexpr Setting Setting::kDtype{89};
inline constexpr Setting Setting::kShardSize{90};
inline constexpr Setting Setting::kEmbeddingScale{91};
inline constexpr Setting Setting::kEmbeddingCommon{92};
inline constexpr Setting Setting::kScope{93};
inline constexpr Setting Setting::kPools{94};
inline constexpr Setting Setting::kExpertBytes{95};
inline constexpr Setting Setting::kWindow{96};
inline constexpr Setting Setting::kDelta{97};
inline constexpr Setting Setting::kDemote{98};
inline constexpr Setting Setting::kHalfLife{99};
inline constexpr Setting Setting::kMemoryExperts{100};
inline constexpr Setting Setting::kShape{101};
inline constexpr Setting Setting::kModel{102};
inline constexpr Setting Setting::kBudget{103};
inline constexpr Setting Setting::kQuick{104};
inline constexpr Setting Setting::kAhead{105};
inline constexpr Setting Setting::kGateInputs{106};
inline constexpr Setting Setting::kRoutingLayers{107};
inline constexpr Setting Setting::kRouting{108};
inline constexpr Setting Setting::kDeviceMemory{109};
inline constexpr Setting Setting::kDeviceSlots{110};
inline constexpr Setting Setting::kDeviceCache{111};
inline constexpr Setting Setting::kWSize{112};
inline constexpr Setting Setting::kUSize{113};
inline constexpr Setting Setting::kDevice{114};
inline constexpr Setting Setting::kPrefetchSize{115};
inline constexpr Setting Setting::kResidual{116};
inline constexpr Setting Setting::kDenseOn{117};
inline constexpr Setting Setting::kDeviceKeep{118};
inline constexpr Setting Setting::kTiers{119};
inline constexpr Setting Setting::kAlpha{120};
inline constexpr Setting Setting::kMerge{121};
inline constexpr Setting Setting::kRenorm{122};
inline constexpr Setting Setting::kPlacementPrefill{123};
inline constexpr Setting Setting::kLink{124};
inline constexpr Setting Setting::kResident{125};
inline constexpr Setting Setting::kAdmit{126};
inline constexpr Setting Setting::kFormat{127};
inline constexpr Setting Setting::kChatTemplate{128};
inline constexpr Setting Setting::kSystem{129};
inline constexpr Setting Setting::kThink{130};
inline constexpr Setting Setting::kNoHistory{131};
inline constexpr Setting Setting::kSimpleIo{132};
inline constexpr Setting Setting::kNoGenerationPrompt{133};
inline constexpr Setting Setting::kSet{134};
inline constexpr Setting Setting::kCaps{135};
inline constexpr Setting Setting::kHost{136};
inline constexpr Setting Setting::kPort{137};
inline constexpr Setting Setting::kUnix{138};
inline constexpr Setting Setting::kApiKey{139};
inline constexpr Setting Setting::kApiKeyFile{140};
inline constexpr Setting Setting::kNoAuth{141};
inline constexpr Setting Setting::kAllowedHost{142};
inline constexpr Setting Setting::kCorsOrigin{143};
inline constexpr Setting Setting::kAlias{144};
inline constexpr Setting Setting::kStrictModel{145};
inline constexpr Setting Setting::kParallel{146};
inline constexpr Setting Setting::kKvTokens{147};
inline constexpr Setting Setting::kDecodeShare{148};
inline constexpr Setting Setting::kQueue{149};
inline constexpr Setting Setting::kSsePing{150};
inline constexpr Setting Setting::kDrain{151};
inline constexpr Setting Setting::kLogJson{152};
inline constexpr Setting Setting::kLogPrompts{153};
inline constexpr Setting Setting::kUiDir{154};
inline constexpr Setting Setting::kNoUi{155};
inline constexpr Setting Setting::kTrustSpecial{156};
inline constexpr Setting Setting::kToolFormat{157};
inline constexpr Setting Setting::kKeepBillingHeader{158};
inline constexpr Setting Setting::kPresencePenalty{159};
inline constexpr Setting Setting::kFrequencyPenalty{160};
inline constexpr Setting Setting::kLogitBias{161};
inline constexpr Setting Setting::kChat{162};
inline constexpr Setting Setting::kDeviceMath{163};
inline constexpr Setting Setting::kDraft{164};
inline constexpr Setting Setting::kHours{165};
inline constexpr Setting Setting::kTokenizer{166};
inline constexpr Setting Setting::kTimedBits{167};
inline constexpr std::size_t kSettings = 168;

std::string mark(Setting setting);
std::string operator+(std::string text, Setting setting);
std::string operator+(Setting setting, std::string_view text);

// By which name a text calls a setting.
enum class NamedBy {
  kFlag,   // for a person at the command line
  kField,  // for the sender of a request
};

struct SettingName {
  Setting setting;
  std::string_view flags;      // one, or a short and a long one, separated by a comma
  std::string_view field;      // in JSON
  bool short_in_text = false;  // texts name the short flag

  constexpr std::string_view flag() const {  // as texts name it
    const std::size_t comma = flags.find(',');
    return comma == flags.npos ? flags : short_in_text ? flags.substr(0, comma) : flags.substr(comma + 1);
  }
  constexpr bool has_flag(std::string_view word) const {
    const std::size_t comma = flags.find(',');
    if (comma == flags.npos) return word == flags;
    return word == flags.substr(0, comma) || word == flags.substr(comma + 1);
  }
};

// A row for each setting, in the order of their indices.
using SettingNames = std::array<SettingName, kSettings>;

const SettingNames& setting_names();
const SettingName& name_of(Setting setting, const SettingNames& names = setting_names());

// The mark that `text` begins with; empty if it begins with none.
std::string_view leading_mark(std::string_view text);
// The setting of a text that is one mark and nothing else.
std::optional<Setting> marked_setting(std::string_view text);
std::string with_names(std::string_view text, NamedBy by = NamedBy::kFlag,
                       const SettingNames& names = setting_names());

// The flag as texts name it, for a command that a text advises and for text that only a terminal sees.
std::string flag(Setting setting);

}  // namespace sluice
