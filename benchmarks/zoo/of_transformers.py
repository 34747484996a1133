"""Models of transformers, one of each family, in small: classes, words of the configuration, and what goes in."""

import importlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from zoo.small import Source

TEXT = {
    "vocab_size": 211, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96,
    "max_position_embeddings": 64,
}  # fmt: skip
GROUPED = TEXT | {"num_key_value_heads": 2}
SEEN = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96, "image_size": 48,
    "patch_size": 8,
}  # fmt: skip
SPOKEN = {
    "vocab_size": 211, "d_model": 48, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 80, "decoder_ffn_dim": 80, "max_position_embeddings": 64,
}  # fmt: skip
HEARD = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96, "vocab_size": 40,
    "conv_dim": [16, 16, 16], "conv_stride": [5, 2, 2], "conv_kernel": [10, 3, 3], "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}  # fmt: skip
TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
T5 = {"vocab_size": 211, "d_model": 48, "d_kv": 12, "d_ff": 80, "num_layers": 2, "num_heads": 4}

OUTPUTS = (
    "logits", "text_embeds", "last_hidden_state", "predicted_depth", "prediction_outputs", "pooler_output",
    "language_output",
)  # fmt: skip
"""The first of these that a model gives is compared."""

TRANSFORMERS: dict[str, tuple[str, str, Mapping[str, Any], str]] = {
    "bert": ("Bert", "BertForSequenceClassification", TEXT, "tokens"),
    "roberta": ("Roberta", "RobertaForTokenClassification", TEXT, "tokens"),
    "distilbert": ("DistilBert", "DistilBertForSequenceClassification", {"vocab_size": 211, "dim": 64, "n_layers": 2,
        "n_heads": 4, "hidden_dim": 96, "max_position_embeddings": 64}, "tokens"),
    "albert": ("Albert", "AlbertModel", TEXT | {"embedding_size": 24}, "tokens"),
    "electra": ("Electra", "ElectraForSequenceClassification", TEXT | {"embedding_size": 24}, "tokens"),
    "mobilebert": ("MobileBert", "MobileBertModel", TEXT | {"hidden_size": 64, "embedding_size": 32,
        "intra_bottleneck_size": 32, "true_hidden_size": 32}, "tokens"),
    "mpnet": ("MPNet", "MPNetModel", TEXT, "tokens"),
    "squeezebert": ("SqueezeBert", "SqueezeBertModel", TEXT | {"embedding_size": 64}, "tokens"),
    "gpt2": ("GPT2", "GPT2LMHeadModel", {"vocab_size": 211, "n_embd": 48, "n_layer": 2, "n_head": 4}, "tokens"),
    "gpt_neox": ("GPTNeoX", "GPTNeoXForCausalLM", TEXT, "tokens"),
    "gptj": ("GPTJ", "GPTJForCausalLM", {"vocab_size": 211, "n_embd": 64, "n_layer": 2, "n_head": 4, "rotary_dim": 8,
        "n_positions": 64}, "tokens"),
    "opt": ("OPT", "OPTForCausalLM", {"vocab_size": 211, "hidden_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "ffn_dim": 96, "word_embed_proj_dim": 64, "max_position_embeddings": 64}, "tokens"),
    "bloom": ("Bloom", "BloomForCausalLM", {"vocab_size": 211, "hidden_size": 64, "n_layer": 2, "n_head": 4},
        "tokens"),
    "phi": ("Phi", "PhiForCausalLM", TEXT, "tokens"),
    "llama": ("Llama", "LlamaForCausalLM", GROUPED, "tokens"),
    "mistral": ("Mistral", "MistralForCausalLM", GROUPED | {"sliding_window": 16}, "tokens"),
    "qwen2": ("Qwen2", "Qwen2ForCausalLM", GROUPED, "tokens"),
    "qwen3": ("Qwen3", "Qwen3ForCausalLM", GROUPED | {"head_dim": 16}, "tokens"),
    "gemma": ("Gemma", "GemmaForCausalLM", GROUPED | {"head_dim": 16, "num_key_value_heads": 1}, "tokens"),
    "gemma2": ("Gemma2", "Gemma2ForCausalLM", GROUPED | {"head_dim": 16}, "tokens"),
    "stablelm": ("StableLm", "StableLmForCausalLM", GROUPED, "tokens"),
    "olmo": ("Olmo", "OlmoForCausalLM", GROUPED, "tokens"),
    "starcoder2": ("Starcoder2", "Starcoder2ForCausalLM", GROUPED, "tokens"),
    "t5": ("T5", "T5ForConditionalGeneration", T5, "pair"),
    "bart": ("Bart", "BartForConditionalGeneration", SPOKEN, "pair"),
    "marian": ("Marian", "MarianMTModel", SPOKEN | {"decoder_start_token_id": 1, "pad_token_id": 0}, "pair"),
    "pegasus": ("Pegasus", "PegasusForConditionalGeneration", SPOKEN, "pair"),
    "whisper": ("Whisper", "WhisperForConditionalGeneration", {**{word: size for word, size in SPOKEN.items() if word
        != "max_position_embeddings"}, "num_mel_bins": 20, "max_source_positions": 60, "max_target_positions": 32,
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "suppress_tokens": None,
        "begin_suppress_tokens": None}, "spoken"),
    "vit": ("ViT", "ViTForImageClassification", SEEN, "image"),
    "deit": ("DeiT", "DeiTForImageClassification", SEEN, "image"),
    "beit": ("Beit", "BeitForImageClassification", SEEN, "image"),
    "dinov2": ("Dinov2", "Dinov2Model", {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "image_size": 48, "patch_size": 8}, "image"),
    "swin": ("Swin", "SwinForImageClassification", {"image_size": 64, "patch_size": 4, "embed_dim": 24, "depths": [2,
        2], "num_heads": [2, 4], "window_size": 4}, "image"),
    "convnext": ("ConvNext", "ConvNextModel", {"hidden_sizes": [16, 24, 40], "depths": [1, 2, 1], "num_stages": 3},
        "image"),
    "poolformer": ("PoolFormer", "PoolFormerModel", {"hidden_sizes": [16, 24, 32, 40], "depths": [1, 1, 1, 1]},
        "image"),
    "segformer": ("Segformer", "SegformerModel", {"hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 1, 1],
        "num_attention_heads": [1, 2, 2, 4]}, "image"),
    "clip_vision": ("CLIPVision", "CLIPVisionModel", SEEN, "image"),
    "clip_text": ("CLIPText", "CLIPTextModel", TEXT | {"eos_token_id": 2}, "tokens"),
    "roformer": ("RoFormer", "RoFormerForSequenceClassification", TEXT, "tokens"),
    "xlm_roberta": ("XLMRoberta", "XLMRobertaModel", TEXT, "tokens"),
    "roberta_prelayernorm": ("RobertaPreLayerNorm", "RobertaPreLayerNormModel", TEXT, "tokens"),
    "xlnet": ("XLNet", "XLNetModel", {"vocab_size": 211, "d_model": 64, "n_layer": 2, "n_head": 4, "d_inner": 96},
        "tokens"),
    "deberta": ("Deberta", "DebertaModel", TEXT | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
        "tokens"),
    "deberta_v2": ("DebertaV2", "DebertaV2Model", TEXT | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"],
        "position_buckets": 16}, "tokens"),
    "ernie": ("Ernie", "ErnieModel", TEXT, "tokens"),
    "esm": ("Esm", "EsmForMaskedLM", TEXT | {"pad_token_id": 1, "mask_token_id": 3, "position_embedding_type":
        "rotary"}, "tokens"),
    "gpt_neo": ("GPTNeo", "GPTNeoForCausalLM", {"vocab_size": 211, "hidden_size": 64, "num_layers": 2, "num_heads": 4,
        "attention_types": [[["global", "local"], 1]], "window_size": 8, "max_position_embeddings": 64}, "tokens"),
    "gpt_bigcode": ("GPTBigCode", "GPTBigCodeForCausalLM", {"vocab_size": 211, "n_embd": 48, "n_layer": 2, "n_head":
        4, "n_positions": 64}, "tokens"),
    "codegen": ("CodeGen", "CodeGenForCausalLM", {"vocab_size": 211, "n_embd": 64, "n_layer": 2, "n_head": 4,
        "rotary_dim": 8, "n_positions": 64, "n_ctx": 64}, "tokens"),
    "falcon": ("Falcon", "FalconForCausalLM", {"vocab_size": 211, "hidden_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4}, "tokens"),
    "mpt": ("Mpt", "MptForCausalLM", {"vocab_size": 211, "d_model": 64, "n_layers": 2, "n_heads": 4,
        "expansion_ratio": 2, "max_seq_len": 64}, "tokens"),
    "persimmon": ("Persimmon", "PersimmonForCausalLM", TEXT, "tokens"),
    "cohere": ("Cohere", "CohereForCausalLM", GROUPED | TOKENS, "tokens"),
    "glm": ("Glm", "GlmForCausalLM", GROUPED | TOKENS | {"head_dim": 16}, "tokens"),
    "granite": ("Granite", "GraniteForCausalLM", GROUPED | {"embedding_multiplier": 2.0, "residual_multiplier": 0.5},
        "tokens"),
    "phi3": ("Phi3", "Phi3ForCausalLM", GROUPED | TOKENS, "tokens"),
    "olmo2": ("Olmo2", "Olmo2ForCausalLM", GROUPED | TOKENS, "tokens"),
    "gemma3": ("Gemma3Text", "Gemma3ForCausalLM", GROUPED | {"head_dim": 16, "sliding_window": 8}, "tokens"),
    "nemotron": ("Nemotron", "NemotronForCausalLM", GROUPED | TOKENS | {"head_dim": 16}, "tokens"),
    "smollm3": ("SmolLM3", "SmolLM3ForCausalLM", GROUPED | TOKENS, "tokens"),
    "helium": ("Helium", "HeliumForCausalLM", GROUPED | TOKENS | {"head_dim": 16}, "tokens"),
    "modernbert": ("ModernBert", "ModernBertModel", TEXT | TOKENS | {"cls_token_id": 1, "sep_token_id": 2,
        "local_attention": 8}, "tokens"),
    "mamba": ("Mamba", "MambaForCausalLM", {"vocab_size": 211, "hidden_size": 32, "num_hidden_layers": 2,
        "state_size": 8}, "ids"),
    "xglm": ("XGLM", "XGLMForCausalLM", {"vocab_size": 211, "d_model": 48, "num_layers": 2, "attention_heads": 4,
        "ffn_dim": 80, "max_position_embeddings": 64}, "tokens"),
    "biogpt": ("BioGpt", "BioGptForCausalLM", TEXT, "tokens"),
    "ctrl": ("CTRL", "CTRLLMHeadModel", {"vocab_size": 211, "n_embd": 48, "n_layer": 2, "n_head": 4, "dff": 80,
        "n_positions": 64}, "tokens"),
    "openai": ("OpenAIGPT", "OpenAIGPTLMHeadModel", {"vocab_size": 211, "n_embd": 48, "n_layer": 2, "n_head": 4,
        "n_positions": 64}, "tokens"),
    "m2m_100": ("M2M100", "M2M100ForConditionalGeneration", SPOKEN, "pair"),
    "mbart": ("MBart", "MBartForConditionalGeneration", SPOKEN, "pair"),
    "blenderbot": ("Blenderbot", "BlenderbotForConditionalGeneration", SPOKEN, "pair"),
    "mt5": ("MT5", "MT5ForConditionalGeneration", T5, "pair"),
    "umt5": ("UMT5", "UMT5ForConditionalGeneration", T5, "pair"),
    "longt5": ("LongT5", "LongT5ForConditionalGeneration", T5 | {"local_radius": 7}, "masked pair"),
    "prophetnet": ("ProphetNet", "ProphetNetForConditionalGeneration", {"vocab_size": 211, "hidden_size": 48,
        "encoder_ffn_dim": 80, "decoder_ffn_dim": 80, "num_encoder_layers": 2, "num_decoder_layers": 2,
        "num_encoder_attention_heads": 4, "num_decoder_attention_heads": 4, "max_position_embeddings": 64, "ngram":
        2}, "pair"),
    "fsmt": ("FSMT", "FSMTForConditionalGeneration", {**{k:v for k, v in SPOKEN.items() if k!="vocab_size"},
        "src_vocab_size": 211, "tgt_vocab_size": 211, "langs": ["a", "b"]}, "masked pair"),
    "layoutlm": ("LayoutLM", "LayoutLMModel", TEXT | {"max_2d_position_embeddings": 64}, "tokens"),
    "convbert": ("ConvBert", "ConvBertModel", TEXT | {"embedding_size": 64, "conv_kernel_size": 5}, "tokens"),
    "funnel": ("Funnel", "FunnelModel", {"vocab_size": 211, "block_sizes": [1, 1], "d_model": 64, "n_head": 4,
        "d_head": 16, "d_inner": 96}, "tokens"),
    "ibert": ("IBert", "IBertModel", TEXT, "tokens"),
    "rembert": ("RemBert", "RemBertModel", TEXT | {"input_embedding_size": 32, "output_embedding_size": 32},
        "tokens"),
    "megatron_bert": ("MegatronBert", "MegatronBertModel", TEXT, "tokens"),
    "data2vec_text": ("Data2VecText", "Data2VecTextModel", TEXT, "tokens"),
    "lilt": ("Lilt", "LiltModel", TEXT | {"hidden_size": 96} | {"max_2d_position_embeddings": 64,
        "channel_shrink_ratio": 4}, "tokens"),
    "splinter": ("Splinter", "SplinterModel", TEXT, "tokens"),
    "flaubert": ("Flaubert", "FlaubertModel", {"vocab_size": 211, "emb_dim": 64, "n_layers": 2, "n_heads": 4,
        "max_position_embeddings": 64}, "tokens"),
    "convnextv2": ("ConvNextV2", "ConvNextV2ForImageClassification", {"hidden_sizes": [16, 24, 40], "depths": [1, 2,
        1], "num_stages": 3}, "image"),
    "focalnet": ("FocalNet", "FocalNetForImageClassification", {"image_size": 64, "embed_dim": 16, "depths": [1, 1, 2,
        1], "focal_levels": [2, 2, 2, 2], "focal_windows": [3, 3, 3, 3], "hidden_sizes": [16, 32, 64, 128]}, "image"),
    "pvt": ("Pvt", "PvtForImageClassification", {"image_size": 64, "hidden_sizes": [16, 32, 40, 64], "depths": [1, 1,
        1, 1], "num_attention_heads": [1, 2, 2, 4]}, "image"),
    "pvt_v2": ("PvtV2", "PvtV2ForImageClassification", {"image_size": 64, "hidden_sizes": [16, 32, 40, 64], "depths":
        [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4]}, "image"),
    "mobilevit": ("MobileViT", "MobileViTForImageClassification", {"image_size": 64, "hidden_sizes": [32, 40, 48],
        "neck_hidden_sizes": [8, 16, 24, 32, 40, 48, 64], "num_attention_heads": 4}, "image"),
    "mobilevitv2": ("MobileViTV2", "MobileViTV2ForImageClassification", {"image_size": 64, "width_multiplier": 0.5},
        "image"),
    "swinv2": ("Swinv2", "Swinv2ForImageClassification", {"image_size": 64, "patch_size": 4, "embed_dim": 24,
        "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}, "image"),
    "swiftformer": ("SwiftFormer", "SwiftFormerForImageClassification", {"image_size": 64, "depths": [1, 1, 1, 1],
        "embed_dims": [16, 24, 32, 48]}, "image"),
    "levit": ("Levit", "LevitForImageClassification", {"image_size": 64, "hidden_sizes": [32, 48, 64],
        "num_attention_heads": [2, 3, 4], "depths": [1, 1, 1], "key_dim": [8, 8, 8]}, "image"),
    "cvt": ("Cvt", "CvtForImageClassification", {"embed_dim": [16, 32, 48], "num_heads": [1, 2, 3], "depth": [1, 2,
        3], "image_size": 64}, "image"),
    "resnet": ("ResNet", "ResNetForImageClassification", {"embedding_size": 16, "hidden_sizes": [16, 24, 32, 40],
        "depths": [1, 1, 1, 1]}, "image"),
    "regnet": ("RegNet", "RegNetForImageClassification", {"embedding_size": 16, "hidden_sizes": [16, 24, 32, 40],
        "depths": [1, 1, 1, 1], "groups_width": 8}, "image"),
    "bit": ("Bit", "BitForImageClassification", {"embedding_size": 16, "hidden_sizes": [32, 64], "depths": [1, 1],
        "num_groups": 8}, "image"),
    "mobilenet_v1": ("MobileNetV1", "MobileNetV1ForImageClassification", {"image_size": 64, "depth_multiplier": 0.25},
        "image"),
    "mobilenet_v2": ("MobileNetV2", "MobileNetV2ForImageClassification", {"image_size": 64, "depth_multiplier": 0.25},
        "image"),
    "efficientnet": ("EfficientNet", "EfficientNetForImageClassification", {"image_size": 64, "width_coefficient":
        0.25, "depth_coefficient": 0.25, "hidden_dim": 320}, "image"),
    "vit_msn": ("ViTMSN", "ViTMSNForImageClassification", SEEN, "image"),
    "yolos": ("Yolos", "YolosForObjectDetection", SEEN | {"image_size": [48, 48], "num_detection_tokens": 10},
        "image"),
    "dpt": ("DPT", "DPTForDepthEstimation", SEEN | {"num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3],
        "neck_hidden_sizes": [8, 16, 24, 32], "fusion_hidden_size": 16, "is_hybrid": False}, "image"),
    "hiera": ("Hiera", "HieraForImageClassification", {"image_size": [64, 64], "embed_dim": 16, "depths": [1, 1, 1,
        1], "num_heads": [1, 1, 2, 2]}, "image"),
    "glpn": ("GLPN", "GLPNForDepthEstimation", {"hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 1, 1],
        "num_attention_heads": [1, 2, 2, 4], "decoder_hidden_size": 16}, "image"),
    "siglip_vision": ("SiglipVision", "SiglipVisionModel", SEEN, "image"),
    "ijepa": ("IJepa", "IJepaModel", SEEN, "image"),
    "wav2vec2": ("Wav2Vec2", "Wav2Vec2ForCTC", HEARD, "sound"),
    "hubert": ("Hubert", "HubertForCTC", HEARD, "sound"),
    "wavlm": ("WavLM", "WavLMModel", HEARD, "sound"),
    "sew": ("SEW", "SEWModel", HEARD | {"squeeze_factor": 2}, "sound"),
    "ast": ("AST", "ASTForAudioClassification", {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 96, "max_length": 48, "num_mel_bins": 24, "patch_size": 8, "frequency_stride": 8,
        "time_stride": 8}, "spectrum"),
    "videomae": ("VideoMAE", "VideoMAEForVideoClassification", SEEN | {"image_size": 32, "num_frames": 4}, "video"),
    "timesformer": ("Timesformer", "TimesformerForVideoClassification", SEEN | {"image_size": 32, "num_frames": 4},
        "video"),
    "vivit": ("Vivit", "VivitForVideoClassification", SEEN | {"image_size": 32, "num_frames": 4, "tubelet_size": [2,
        8, 8]}, "video"),
    "patchtst": ("PatchTST", "PatchTSTForPrediction", {"num_input_channels": 3, "context_length": 32, "patch_length":
        8, "patch_stride": 8, "d_model": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 48,
        "prediction_length": 8, "scaling": None}, "series"),
    "switch": ("SwitchTransformers", "SwitchTransformersForConditionalGeneration", T5 | {"num_experts": 4},
        "masked pair"),
    "fnet": ("FNet", "FNetModel", {word: size for word, size in TEXT.items() if word != "num_attention_heads"}, "ids"),
    "mixtral": ("Mixtral", "MixtralForCausalLM", GROUPED | {"num_local_experts": 4}, "tokens"),
    "qwen2_moe": ("Qwen2Moe", "Qwen2MoeForCausalLM", GROUPED | {"num_experts": 4, "num_experts_per_tok": 2,
        "moe_intermediate_size": 48, "shared_expert_intermediate_size": 64}, "tokens"),
    "olmoe": ("Olmoe", "OlmoeForCausalLM", GROUPED | {"num_experts": 4, "num_experts_per_tok": 2} | TOKENS, "tokens"),
    "camembert": ("Camembert", "CamembertForTokenClassification", TEXT, "tokens"),
    "bigbird": ("BigBird", "BigBirdModel", TEXT | {"attention_type": "original_full"}, "tokens"),
    "nystromformer": ("Nystromformer", "NystromformerModel", TEXT | {"segment_means_seq_len": 19, "num_landmarks":
        19}, "tokens"),
    "xmod": ("Xmod", "XmodModel", TEXT | {"languages": ["en_XX"], "default_language": "en_XX"}, "tokens"),
    "gpt_neox_japanese": ("GPTNeoXJapanese", "GPTNeoXJapaneseForCausalLM", TEXT, "tokens"),
    "deepseek_v2": ("DeepseekV2", "DeepseekV2ForCausalLM", GROUPED | {"kv_lora_rank": 16, "q_lora_rank": 16,
        "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 16, "n_routed_experts": 4, "num_experts_per_tok": 2,
        "moe_intermediate_size": 32, "n_shared_experts": 1, "first_k_dense_replace": 1, "num_key_value_heads": 4},
        "tokens"),
    "qwen3_moe": ("Qwen3Moe", "Qwen3MoeForCausalLM", GROUPED | {"num_experts": 4, "num_experts_per_tok": 2,
        "moe_intermediate_size": 48, "head_dim": 16}, "tokens"),
    "phimoe": ("Phimoe", "PhimoeForCausalLM", GROUPED | {"num_local_experts": 4}, "tokens"),
    "granitemoe": ("GraniteMoe", "GraniteMoeForCausalLM", GROUPED | {"num_local_experts": 4}, "tokens"),
    "exaone4": ("Exaone4", "Exaone4ForCausalLM", GROUPED, "tokens"),
    "ernie4_5": ("Ernie4_5", "Ernie4_5ForCausalLM", GROUPED | {"head_dim": 16}, "tokens"),
    "seed_oss": ("SeedOss", "SeedOssForCausalLM", GROUPED | {"head_dim": 16}, "tokens"),
    "led": ("LED", "LEDForConditionalGeneration", {word: size for word, size in SPOKEN.items() if word !=
        "max_position_embeddings"} | {"max_encoder_position_embeddings": 64, "max_decoder_position_embeddings": 64,
        "attention_window": 8}, "pair"),
    "plbart": ("PLBart", "PLBartForConditionalGeneration", SPOKEN, "pair"),
    "dinov2_registers": ("Dinov2WithRegisters", "Dinov2WithRegistersModel", SEEN, "image"),
    "swin2sr": ("Swin2SR", "Swin2SRModel", {"image_size": 16, "embed_dim": 24, "depths": [1, 1], "num_heads": [2,
        2], "window_size": 4}, "image"),
    "vitdet": ("VitDet", "VitDetModel", SEEN, "image"),
    "textnet": ("TextNet", "TextNetModel", {"stem_out_channels": 8, "hidden_sizes": [8, 8, 16, 16, 24]}, "image"),
    "hgnet_v2": ("HGNetV2", "HGNetV2ForImageClassification", {"embedding_size": 8, "hidden_sizes": [16, 24, 32, 40],
        "depths": [1, 1, 1, 1], "stem_channels": [3, 8, 16], "stage_in_channels": [16, 16, 24, 32],
        "stage_mid_channels": [8, 8, 12, 16], "stage_out_channels": [16, 24, 32, 40], "stage_num_blocks": [1, 1, 1, 1],
        "stage_numb_of_layers": [2, 2, 2, 2]}, "image"),
    "unispeech": ("UniSpeech", "UniSpeechModel", HEARD, "sound"),
    "data2vec_audio": ("Data2VecAudio", "Data2VecAudioForCTC", HEARD, "sound"),
    "patchtsmixer": ("PatchTSMixer", "PatchTSMixerForPrediction", {"num_input_channels": 3, "context_length": 32,
        "patch_length": 8, "patch_stride": 8, "d_model": 16, "num_layers": 2, "prediction_length": 8, "scaling": None},
        "series"),
    "data2vec_vision": ("Data2VecVision", "Data2VecVisionForImageClassification", SEEN, "image"),
    "nomic_bert": ("NomicBert", "NomicBertModel", TEXT, "tokens"),
    "eurobert": ("EuroBert", "EuroBertModel", GROUPED | TOKENS, "tokens"),
    "mra": ("Mra", "MraModel", TEXT | {"max_position_embeddings": 64}, "tokens"),
    "yoso": ("Yoso", "YosoModel", TEXT, "tokens"),
    "reformer": ("Reformer", "ReformerModel", {"vocab_size": 211, "hidden_size": 64, "attn_layers": ["local", "local"],
        "num_attention_heads": 4, "attention_head_size": 16, "feed_forward_size": 96, "axial_pos_embds": False,
        "max_position_embeddings": 64, "local_attn_chunk_length": 8}, "ids"),
    "canine": ("Canine", "CanineModel", TEXT | {"num_hash_buckets": 64, "local_transformer_stride": 8,
        "downsampling_rate": 4, "max_position_embeddings": 128}, "ids"),
    "markuplm": ("MarkupLM", "MarkupLMModel", TEXT, "tokens"),
    "bros": ("Bros", "BrosModel", TEXT, "boxes"),
    "xlm": ("XLM", "XLMModel", {"vocab_size": 211, "emb_dim": 64, "n_layers": 2, "n_heads": 4,
        "max_position_embeddings": 64}, "tokens"),
    "xlm_roberta_xl": ("XLMRobertaXL", "XLMRobertaXLModel", TEXT, "tokens"),
    "bert_generation": ("BertGeneration", "BertGenerationEncoder", TEXT, "tokens"),
    "dpr": ("DPR", "DPRQuestionEncoder", TEXT, "tokens"),
    "tapas": ("Tapas", "TapasModel", TEXT, "tokens"),
    "luke": ("Luke", "LukeModel", TEXT | {"entity_vocab_size": 20, "entity_emb_size": 24}, "tokens"),
    "layoutlmv3": ("LayoutLMv3", "LayoutLMv3Model", TEXT | {"visual_embed": False, "max_2d_position_embeddings": 64,
        "coordinate_size": 8, "shape_size": 16}, "boxes"),
    "visual_bert": ("VisualBert", "VisualBertModel", TEXT | {"visual_embedding_dim": 24}, "regions"),
    "lxmert": ("Lxmert", "LxmertModel", {"vocab_size": 211, "hidden_size": 64, "num_attention_heads": 4,
        "intermediate_size": 96, "l_layers": 1, "x_layers": 1, "r_layers": 1, "visual_feat_dim": 24,
        "max_position_embeddings": 64}, "objects"),
    "perceiver": ("Perceiver", "PerceiverModel", {"num_latents": 16, "d_latents": 48, "d_model": 32, "num_blocks": 1,
        "num_self_attends_per_block": 2, "num_self_attention_heads": 4, "num_cross_attention_heads": 4}, "values"),
    "mvp": ("Mvp", "MvpForConditionalGeneration", SPOKEN, "pair"),
    "bigbird_pegasus": ("BigBirdPegasus", "BigBirdPegasusForConditionalGeneration", SPOKEN | {"attention_type":
        "original_full"}, "pair"),
    "rwkv": ("Rwkv", "RwkvForCausalLM", {"vocab_size": 211, "hidden_size": 48, "num_hidden_layers": 2, "context_length":
        64}, "ids"),
    "mamba2": ("Mamba2", "Mamba2ForCausalLM", {"vocab_size": 211, "hidden_size": 32, "num_hidden_layers": 2,
        "state_size": 8, "num_heads": 8, "head_dim": 8, "n_groups": 2, "chunk_size": 8}, "ids"),
    "xlstm": ("xLSTM", "xLSTMForCausalLM", {"vocab_size": 211, "hidden_size": 64, "num_hidden_layers": 2, "num_heads":
        4, "chunk_size": 16}, "ids"),
    "gpt_oss": ("GptOss", "GptOssForCausalLM", GROUPED | TOKENS | {"num_local_experts": 4, "num_experts_per_tok": 2,
        "head_dim": 16, "sliding_window": 8}, "tokens"),
    "deepseek_v3": ("DeepseekV3", "DeepseekV3ForCausalLM", GROUPED | {"kv_lora_rank": 16, "q_lora_rank": 16,
        "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 16, "n_routed_experts": 4, "num_experts_per_tok": 2,
        "moe_intermediate_size": 32, "n_group": 2, "topk_group": 1, "first_k_dense_replace": 1, "num_key_value_heads":
        4}, "tokens"),
    "llama4": ("Llama4Text", "Llama4ForCausalLM", GROUPED | TOKENS | {"intermediate_size_mlp": 96, "num_local_experts":
        4, "head_dim": 16, "attention_chunk_size": 8}, "tokens"),
    "wav2vec2_bert": ("Wav2Vec2Bert", "Wav2Vec2BertModel", {"hidden_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "intermediate_size": 96, "feature_projection_input_dim": 24}, "features"),
    "llava": ("Llava", "LlavaForConditionalGeneration", {"text_config": GROUPED | TOKENS | {"model_type": "llama"},
        "vision_config": SEEN | {"model_type": "clip_vision_model"}, "image_token_index": 210, "image_seq_length": 36,
        "vision_feature_layer": -1}, "seen"),
    "detr": ("Detr", "DetrForObjectDetection", {"backbone_config": {"model_type": "resnet", "embedding_size": 16,
        "hidden_sizes": [16, 24, 32, 40], "depths": [1, 1, 1, 1], "out_features": ["stage4"]}, "backbone": None,
        "use_timm_backbone": False, "use_pretrained_backbone": False, "d_model": 32, "num_queries": 9,
        "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
        "encoder_ffn_dim": 48, "decoder_ffn_dim": 48}, "masked image"),
    "time_series": ("TimeSeriesTransformer", "TimeSeriesTransformerModel", {"prediction_length": 6, "context_length":
        24, "lags_sequence": [1, 2, 3], "num_time_features": 2, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1,
        "encoder_ffn_dim": 48, "decoder_ffn_dim": 48}, "times"),
}  # fmt: skip
"""By name the word before `Config`, the class, words of the configuration, and what goes in (`_inputs`)."""

GENERATING = (
    "gpt2", "llama", "mistral", "qwen2", "qwen3", "gemma", "phi", "gpt_neox", "falcon", "olmo2", "stablelm", "opt",
)  # fmt: skip
"""Models that are also compiled with caches."""


class Called(nn.Module):
    """A model of transformers that takes its inputs by name and returns its first output."""

    def __init__(self, inner: nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.inner = inner
        self.names = names

    def forward(self, *inputs: Tensor) -> Tensor:
        words = dict(zip(self.names, inputs, strict=True))
        cached = {"use_cache": False} if hasattr(self.inner.config, "use_cache") else {}
        outputs = self.inner(**words, **cached, return_dict=True)
        return next(getattr(outputs, name) for name in OUTPUTS if getattr(outputs, name, None) is not None)


class Windows(nn.Module):
    """A decoder of transformers as `be.Program` takes it. It maps a window of tokens [1, n], their positions [1, n] and
    caches [1, heads, length, size] to scores [1, n, tokens] and the keys and values of the window."""

    LENGTH = 64

    def __init__(self, word: str, cls: str, words: Mapping[str, Any]) -> None:
        super().__init__()
        self.package = importlib.import_module("transformers")
        config = getattr(self.package, f"{word}Config")(**words)
        config._attn_implementation = "eager"
        self.inner = getattr(self.package, cls)(config)
        with torch.no_grad():
            filled = self.inner(input_ids=torch.zeros(1, 1, dtype=torch.int64), use_cache=True).past_key_values
        first = filled.layers[0].keys  # heads and sizes have many names in configurations
        self.empty = torch.zeros(1, first.shape[1], self.LENGTH, first.shape[3])
        self.layers = len(filled.layers)

    def forward(self, tokens: Tensor, positions: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        n = tokens.shape[1]
        cache = self.package.DynamicCache()
        for layer in range(self.layers):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        earlier = torch.where(torch.arange(self.LENGTH) < positions[:, :1], 0.0, -1e9).expand(n, self.LENGTH)
        mask = torch.cat([earlier, torch.full((n, n), -1e9).triu(1)], 1)[None, None]
        outputs = self.inner(
            input_ids=tokens, position_ids=positions, attention_mask=mask, past_key_values=cache, use_cache=True
        )
        window: list[Tensor] = []
        for layer in cache.layers:
            window += [layer.keys[:, :, -n:], layer.values[:, :, -n:]]
        return (outputs.logits, *window)

    def window(self, n: int = 32) -> tuple[Tensor, ...]:
        """Return example inputs of a window of n tokens, with empty caches."""
        return torch.zeros(1, n, dtype=torch.int64), torch.arange(n)[None], *[self.empty] * (2 * self.layers)

    def keeps(self) -> dict[int, str]:
        """Return the cache that each output goes to, as `be.Program` takes it."""
        return {1 + number: f"past_{number}" for number in range(2 * self.layers)}

    @torch.no_grad()
    def greedy(self, prompt: list[int], count: int) -> list[int]:
        """Return the tokens that the package's model generates without caches."""
        tokens = list(prompt)
        for _ in range(count):
            scores = self.inner(input_ids=torch.tensor([tokens]), use_cache=False).logits
            tokens.append(int(scores[0, -1].argmax()))
        return tokens[len(prompt) :]


def build_model(word: str, cls: str, words: Mapping[str, Any], kind: str) -> Source:
    """Return a model with its inputs."""
    package = importlib.import_module("transformers")
    config = getattr(package, f"{word}Config")(**words)
    config._attn_implementation = "eager"
    inputs = _inputs(kind, words)
    return Called(getattr(package, cls)(config), tuple(inputs)), tuple(inputs.values())


def _inputs(kind: str, words: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the inputs of a kind by name."""
    tokens = torch.randint(3, 200, (1, 19))
    size = words.get("image_size", 64)
    edge = size[0] if isinstance(size, list) else size
    by_kind: dict[str, dict[str, Tensor]] = {
        "ids": {"input_ids": tokens},
        "tokens": {"input_ids": tokens, "attention_mask": torch.ones(1, 19, dtype=torch.int64)},
        "pair": {"input_ids": tokens, "decoder_input_ids": torch.randint(3, 200, (1, 13))},
        "masked pair": {
            "input_ids": tokens,
            "decoder_input_ids": torch.randint(3, 200, (1, 13)),
            "attention_mask": torch.ones(1, 19, dtype=torch.int64),
            "decoder_attention_mask": torch.ones(1, 13, dtype=torch.int64),
        },
        "boxes": {
            "input_ids": tokens,
            "bbox": torch.cat([torch.randint(low, low + 20, (1, 19, 2)) for low in (0, 20)], -1),
        },
        "regions": {"input_ids": tokens, "visual_embeds": torch.randn(1, 5, 24)},
        "objects": {"input_ids": tokens, "visual_feats": torch.randn(1, 5, 24), "visual_pos": torch.rand(1, 5, 4)},
        "values": {"inputs": torch.randn(1, 20, 32)},
        "seen": {
            "input_ids": torch.cat([torch.full((1, 36), 210), tokens], 1),
            "pixel_values": torch.randn(1, 3, 48, 48),
        },
        "masked image": {"pixel_values": torch.randn(1, 3, 64, 64), "pixel_mask": torch.ones(1, 64, 64).long()},
        "times": {
            "past_values": torch.randn(1, 27),
            "past_time_features": torch.randn(1, 27, 2),
            "past_observed_mask": torch.ones(1, 27),
            "future_values": torch.randn(1, 6),
            "future_time_features": torch.randn(1, 6, 2),
        },
        "features": {"input_features": torch.randn(1, 40, 24)},
        "spoken": {"input_features": torch.randn(1, 20, 120), "decoder_input_ids": torch.randint(3, 200, (1, 13))},
        "image": {"pixel_values": torch.randn(1, 3, edge, edge)},
        "video": {"pixel_values": torch.randn(1, 4, 3, edge, edge)},
        "sound": {"input_values": torch.randn(1, 640)},
        "spectrum": {"input_values": torch.randn(1, 48, 24)},
        "series": {"past_values": torch.randn(1, 32, 3)},
    }
    return by_kind[kind]
