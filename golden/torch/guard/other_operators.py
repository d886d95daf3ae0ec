"""The operators of PyTorch that sum no products, by name; see `golden.torch.guard.operator_table`."""

OTHERS = {
    "_c10d_functional": """
        _wrap_tensor_autograd all_gather_into_tensor all_gather_into_tensor_coalesced all_gather_into_tensor_out
        all_reduce all_reduce_coalesced all_to_all_single batch_p2p_ops broadcast irecv isend reduce_scatter_tensor
        reduce_scatter_tensor_coalesced reduce_scatter_tensor_out wait_tensor wait_tensors
    """,
    "_c10d_functional_autograd": """
        all_gather_into_tensor all_to_all_single reduce_scatter_tensor
    """,
    "_dtensor": """
        mesh_get_process_group shard_dim_alltoall
    """,
    "_inductor_test": """
        realize
    """,
    "_quantized": """
        _wrapped_linear_prepack add conv2d_prepack conv3d_prepack conv_transpose1d_prepack conv_transpose2d_prepack
        conv_transpose3d_prepack linear_prepack linear_prepack_fp16 linear_prepack_fp16_legacy linear_prepack_legacy
        wrapped_fbgemm_pack_gemm_matrix_fp16
    """,
    "aten": """
        __irshift__ _adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d
        _adaptive_avg_pool3d_backward _add_relu _aminmax _amp_foreach_non_finite_check_and_unscale _amp_update_scale
        _assert_async _assert_scalar _assert_tensor_metadata _batch_norm_no_update _batch_norm_with_update
        _batch_norm_with_update_functional _chunk_cat _coalesce _coalesced _conj _convert_indices_from_coo_to_csr
        _convert_indices_from_csr_to_coo _convert_weight_to_int4pack _convert_weight_to_int4pack_for_cpu _copy_from
        _copy_from_and_resize _cslt_compress _ctc_loss _ctc_loss_backward _cudnn_ctc_loss _cudnn_init_dropout_state
        _cudnn_rnn_flatten_weight _cummax_helper _cummin_helper _dimI _dimV _dirichlet_grad _dyn_quant_pack_4bit_weight
        _efficientzerotensor _embedding_bag _embedding_bag_backward _embedding_bag_dense_backward
        _embedding_bag_forward_only _empty_affine_quantized _empty_per_channel_affine_quantized
        _fake_quantize_learnable_per_channel_affine _fake_quantize_learnable_per_channel_affine_backward
        _fake_quantize_learnable_per_tensor_affine _fake_quantize_learnable_per_tensor_affine_backward
        _fake_quantize_per_tensor_affine_cachemask_tensor_qparams _fill_mem_eff_dropout_mask _foobar _foreach_abs
        _foreach_acos _foreach_add _foreach_addcdiv _foreach_addcmul _foreach_asin _foreach_atan _foreach_ceil
        _foreach_clamp_max _foreach_clamp_min _foreach_clone _foreach_copy _foreach_cos _foreach_cosh _foreach_div
        _foreach_erf _foreach_erfc _foreach_exp _foreach_expm1 _foreach_floor _foreach_frac _foreach_lerp
        _foreach_lgamma _foreach_log _foreach_log10 _foreach_log1p _foreach_log2 _foreach_max _foreach_maximum
        _foreach_minimum _foreach_mul _foreach_neg _foreach_norm _foreach_pow _foreach_powsum _foreach_reciprocal
        _foreach_round _foreach_rsqrt _foreach_sigmoid _foreach_sign _foreach_sin _foreach_sinh _foreach_sqrt
        _foreach_sub _foreach_tan _foreach_tanh _foreach_trunc _foreach_zero _functional_assert_async
        _functional_assert_scalar _functional_sym_constrain_range _functional_sym_constrain_range_for_size
        _fused_adagrad _fused_adam _fused_adamw _fused_dropout _fused_moving_avg_obs_fq_helper
        _fused_moving_avg_obs_fq_helper_functional _fused_rms_norm_backward _fused_sdp_choice _fused_sgd _fw_primal
        _grid_sampler_2d_cpu_fallback _grid_sampler_2d_cpu_fallback_backward _has_same_storage_numel
        _histogramdd_bin_edges _histogramdd_from_bin_cts _histogramdd_from_bin_tensors _index_put_impl _indices
        _is_all_true _is_any_true _jagged_to_padded_dense_forward _lazy_clone _linalg_check_errors _local_scalar_dense
        _log_softmax _log_softmax_backward_data _logcumsumexp _make_dep_token _make_dual
        _make_per_channel_quantized_tensor _make_per_tensor_quantized_tensor _masked_scale _masked_softmax
        _masked_softmax_backward _mkldnn_reshape _mkldnn_transpose _native_batch_norm_legit
        _native_batch_norm_legit_functional _native_batch_norm_legit_no_training _neg_view
        _nested_compute_contiguous_strides_offsets _nested_from_padded _nested_from_padded_and_nested_example
        _nested_from_padded_tensor _nested_get_jagged_dummy _nested_get_lengths _nested_get_max_seqlen
        _nested_get_min_seqlen _nested_get_offsets _nested_get_ragged_idx _nested_get_values _nested_select_backward
        _nested_sum_backward _nested_tensor_from_mask _nested_tensor_from_mask_left_aligned
        _nested_tensor_from_tensor_list _nested_tensor_size _nested_tensor_softmax_with_shape
        _nested_tensor_storage_offsets _nested_tensor_strides _nested_view_from_buffer _nested_view_from_jagged
        _new_zeros_with_same_feature_meta _nnz _pack_padded_sequence _padded_dense_to_jagged_forward _pdist_backward
        _pdist_forward _philox_key_fold_in _philox_key_split _philox_normal _philox_randint _philox_uniform _pin_memory
        _prelu_kernel _prelu_kernel_backward _print _reshape_alias _reshape_copy _resize_output _safe_softmax
        _sample_dirichlet _segment_reduce_backward _softmax _softmax_backward_data _sparse_broadcast_to
        _sparse_compressed_tensor_with_dims _sparse_coo_tensor_with_dims _sparse_coo_tensor_with_dims_and_tensors
        _sparse_csr_prod _sparse_csr_sum _sparse_log_softmax _sparse_log_softmax_backward_data _sparse_mask_projection
        _sparse_semi_structured_apply _sparse_semi_structured_apply_dense _sparse_semi_structured_tile _sparse_softmax
        _sparse_softmax_backward_data _sparse_sum _sparse_sum_backward _spdiags _stack _standard_gamma
        _standard_gamma_grad _test_autograd_multiple_dispatch _test_autograd_multiple_dispatch_view
        _test_functorch_fallback _test_optional_filled_intlist _test_optional_floatlist _test_optional_intlist
        _test_parallel_materialize _test_warn_in_autograd _thnn_fused_gru_cell _thnn_fused_gru_cell_backward
        _thnn_fused_lstm_cell _thnn_fused_lstm_cell_backward_impl _to_copy _to_dense _to_sparse _to_sparse_bsc
        _to_sparse_bsr _to_sparse_csc _to_sparse_csr _to_sparse_semi_structured _transform_bias_rescale_qkv _unique
        _unique2 _unsafe_index _unsafe_index_put _unsafe_masked_index _unsafe_masked_index_put_accumulate _unsafe_view
        _upsample_bicubic2d_aa _upsample_bicubic2d_aa_backward _upsample_bilinear2d_aa _upsample_bilinear2d_aa_backward
        _upsample_lanczos2d_aa _upsample_lanczos2d_aa_backward _upsample_nearest_exact1d
        _upsample_nearest_exact1d_backward _upsample_nearest_exact2d _upsample_nearest_exact2d_backward
        _upsample_nearest_exact3d _upsample_nearest_exact3d_backward _use_cudnn_ctc_loss _use_miopen_ctc_loss
        _validate_compressed_sparse_indices _values _weight_norm_interface _weight_norm_interface_backward
        adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_avg_pool3d_backward adaptive_max_pool2d
        adaptive_max_pool2d_backward adaptive_max_pool3d adaptive_max_pool3d_backward alias allclose arange as_strided
        as_strided_scatter avg_pool1d avg_pool2d avg_pool2d_backward avg_pool3d avg_pool3d_backward bartlett_window
        batch_norm_backward batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt
        batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats bernoulli
        binary_cross_entropy binary_cross_entropy_backward binary_cross_entropy_with_logits bincount binomial
        blackman_window block_diag bucketize cat cauchy ccol_indices channel_shuffle col2im col_indices complex
        constant_pad_nd copy copy_sparse_to_sparse crow_indices cudnn_batch_norm cudnn_batch_norm_backward
        cudnn_grid_sampler cudnn_grid_sampler_backward cummax cummin cumprod cumsum dense_dim dequantize detach
        diag_embed diagonal diagonal_backward diagonal_scatter dist elu_backward embedding embedding_dense_backward
        embedding_renorm empty empty_like empty_permuted empty_quantized empty_strided expand exponential eye
        fake_quantize_per_channel_affine_cachemask fake_quantize_per_tensor_affine_cachemask fft_fftfreq fft_rfftfreq
        fill flip floor_divide fractional_max_pool2d fractional_max_pool2d_backward fractional_max_pool3d
        fractional_max_pool3d_backward from_file full full_like gather geometric glu glu_backward glu_backward_jvp
        glu_jvp grid_sampler_2d grid_sampler_2d_backward grid_sampler_3d grid_sampler_3d_backward hamming_window
        hann_window hardshrink_backward hardsigmoid_backward hardswish hardswish_backward hardtanh_backward hash_tensor
        histc histogram huber_loss huber_loss_backward im2col index index_add index_copy index_fill index_put
        index_reduce index_select indices int_repr is_coalesced is_pinned is_same_size is_set_to isin kaiser_window
        kthvalue leaky_relu_backward lift lift_fresh linspace log_normal log_sigmoid_backward log_sigmoid_forward
        log_softmax logcumsumexp logspace lu_unpack masked_scatter masked_scatter_backward masked_select
        max_pool2d_backward max_pool2d_with_indices max_pool2d_with_indices_backward max_pool3d_with_indices
        max_pool3d_with_indices_backward max_unpool2d max_unpool3d median miopen_batch_norm miopen_batch_norm_backward
        miopen_ctc_loss mkldnn_adaptive_avg_pool2d mkldnn_adaptive_avg_pool2d_backward mkldnn_max_pool2d
        mkldnn_max_pool2d_backward mkldnn_max_pool3d mkldnn_max_pool3d_backward mkldnn_reorder_conv2d_weight
        mkldnn_reorder_conv3d_weight mode mse_loss mse_loss_backward multi_margin_loss multi_margin_loss_backward
        multilabel_margin_loss_backward multilabel_margin_loss_forward multinomial nanmedian native_batch_norm
        native_batch_norm_backward native_dropout native_group_norm native_group_norm_backward native_layer_norm
        native_layer_norm_backward native_norm new_empty new_empty_strided new_full new_ones new_zeros
        nll_loss2d_backward nll_loss2d_forward nll_loss_backward nll_loss_forward nonzero nonzero_static normal
        normal_functional ones ones_like permute pixel_shuffle pixel_unshuffle poisson polar put q_per_channel_axis
        q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qscheme quantize_per_channel
        quantize_per_tensor quantize_per_tensor_dynamic quantized_batch_norm quantized_max_pool1d quantized_max_pool2d
        quantized_max_pool3d rand rand_like randint randint_like randn randn_like random randperm range record_stream
        reflection_pad1d reflection_pad1d_backward reflection_pad2d reflection_pad2d_backward reflection_pad3d
        reflection_pad3d_backward renorm repeat repeat_interleave replication_pad1d replication_pad1d_backward
        replication_pad2d replication_pad2d_backward replication_pad3d replication_pad3d_backward resize resize_as
        resize_as_sparse roll rot90 row_indices rrelu_with_noise rrelu_with_noise_backward rrelu_with_noise_functional
        scalar_tensor scatter scatter_add scatter_reduce searchsorted segment_reduce select select_backward
        select_scatter set shallow_copy_data slice slice_backward slice_inverse smooth_l1_loss smooth_l1_loss_backward
        soft_margin_loss soft_margin_loss_backward softmax softplus_backward softshrink_backward sort
        sparse_compressed_tensor sparse_coo_tensor sparse_dim sparse_mask sparse_resize sparse_resize_and_clear split
        split_with_sizes squeeze stack sym_constrain_range sym_constrain_range_for_size t take
        to_padded_tensor topk trace transpose tril tril_indices triu triu_indices unbind unfold unfold_backward uniform
        unique_consecutive unique_dim unique_dim_consecutive unsafe_split unsafe_split_with_sizes unsqueeze
        upsample_bicubic2d upsample_bicubic2d_backward upsample_bilinear2d upsample_bilinear2d_backward
        upsample_linear1d upsample_linear1d_backward upsample_nearest1d upsample_nearest1d_backward upsample_nearest2d
        upsample_nearest2d_backward upsample_nearest3d upsample_nearest3d_backward upsample_trilinear3d
        upsample_trilinear3d_backward values view view_as_complex view_as_real zero zeros zeros_like
    """,
    "c10d": """
        _allgather_base _reduce_scatter_base allgather allgather_coalesced allgather_into_tensor_coalesced allreduce
        allreduce_coalesced alltoall alltoall_base barrier broadcast check_for_nan gather gather_into_tensor
        monitored_barrier recv recv_any_source reduce reduce_scatter reduce_scatter_tensor_coalesced scatter send
    """,
    "coor": """
        current_device current_device_index
    """,
    "cplib": """
        flex_cp_allgather flex_cp_allgather_backward
    """,
    "debug_mode_ops": """
        annotate
    """,
    "debugprims": """
        load_tensor
    """,
    "export": """
        access_subclass_inner_tensor
    """,
    "flex_gemm": """
        autograd_not_implemented to_blocked
    """,
    "flex_lib": """
        zeros_and_scatter
    """,
    "fsdp": """
        all_gather_copy_in chunk_cat chunk_cat_mixed_dtype copy record_grad_output_stream split_with_sizes_copy
    """,
    "inductor": """
        _reinterpret_tensor accumulate_grad resize_storage_bytes
    """,
    "inductor_prims": """
        inductor_reserve_rng_state
    """,
    "mempool": """
        begin end
    """,
    "mkl": """
        _mkl_reorder_linear_weight
    """,
    "mkldnn": """
        _get_mkldnn_serialized_md _nbytes _reorder_convolution_transpose_weight _reorder_convolution_weight
        _reorder_linear_weight _reorder_mkldnn_rnn_layer_weight data_ptr
    """,
    "mkldnn_prepacked": """
        conv2d_prepack
    """,
    "onednn": """
        linear_prepack_fp16 qadd qadd_relu qbatch_norm2d qconv_prepack qlinear_prepack qmul
    """,
    "pippy": """
        _pipe_split
    """,
    "prepacked": """
        conv2d_clamp_prepack conv2d_transpose_clamp_prepack linear_clamp_prepack
    """,
    "prims": """
        _low_memory_max_pool_offsets_to_indices _low_memory_max_pool_with_offsets _make_token _sink_tokens
        _unsafe_index_put acos acosh add as_strided as_strided_scatter asin asinh atan atan2 atanh bessel_i0 bessel_i0e
        bessel_i1 bessel_i1e bessel_j0 bessel_j1 bitwise_and bitwise_or bitwise_xor broadcast_in_dim cat cbrt ceil clone
        collapse collapse_view conj copy_strided copy_to cos cosh device_put div empty empty_permuted empty_strided eq
        erf erf_inv erfc erfcx exp expm1 fill floor fmod frexp full full_like gcd ge gt imag inductor_cvt_e8m0_rceil
        inductor_force_stride_order inductor_lookup_seed inductor_rand_eager_offset inductor_rand_eager_offsets
        inductor_randint inductor_random inductor_seed inductor_seeds iota isfinite item le lgamma log log10 log1p lt
        maximum_value minimum_value mul ndtri ne neg normal pow prepare_softmax_online prod real remainder reshape
        resize rev round scalar_tensor shift_left shift_right_arithmetic sin sinh spherical_bessel_j0 split_dim sqrt
        squeeze sub sum tan tanh transpose uniform view_of view_of_dtype where xor_sum zeta
    """,
    "profiler": """
        _record_function_enter _record_function_enter_new _record_function_exit
    """,
    "quantization": """
        _Bfloat16QuantizedToFloat _FloatToBfloat16Quantized
    """,
    "quantized": """
        add add_out add_relu add_relu_out add_scalar add_scalar_out add_scalar_relu add_scalar_relu_out batch_norm
        batch_norm1d batch_norm1d_relu batch_norm2d batch_norm2d_relu batch_norm3d batch_norm3d_relu batch_norm_relu cat
        cat_out cat_relu cat_relu_out celu clamp conv1d_prepack conv2d_prepack conv3d_prepack conv_prepack
        conv_transpose1d_prepack conv_transpose2d_prepack conv_transpose3d_prepack dropout elu embedding_4bit
        embedding_bag_2bit_prepack embedding_bag_2bit_prepack_with_rowwise_min_max embedding_bag_2bit_rowwise_offsets
        embedding_bag_2bit_unpack embedding_bag_4bit embedding_bag_4bit_prepack
        embedding_bag_4bit_prepack_with_rowwise_min_max embedding_bag_4bit_rowwise_offsets embedding_bag_4bit_unpack
        embedding_bag_byte embedding_bag_byte_prepack embedding_bag_byte_prepack_with_rowwise_min_max
        embedding_bag_byte_rowwise_offsets embedding_bag_byte_unpack embedding_bag_prepack embedding_byte group_norm
        hardswish instance_norm int4mm_packed_weight_cpu layer_norm leaky_relu linear_prepack linear_prepack_fp16
        linear_prepack_fp16_legacy linear_prepack_legacy linear_unpack linear_unpack_fp16 make_quantized_cell_params
        make_quantized_cell_params_dynamic max_pool1d max_pool2d mul mul_out mul_relu mul_relu_out mul_scalar
        mul_scalar_out mul_scalar_relu mul_scalar_relu_out prelu relu6 sigmoid softmax threshold
    """,
    "quantized_decomposed": """
        choose_qparams choose_qparams_per_token choose_qparams_per_token_asymmetric choose_qparams_symmetric
        convert_element_type dequantize_per_channel dequantize_per_channel_group dequantize_per_tensor
        dequantize_per_token fake_quant_per_channel quantize_per_channel quantize_per_channel_group quantize_per_tensor
        quantize_per_token
    """,
    "rngprims": """
        philox_rand
    """,
    "sparse": """
        qlinear_prepack
    """,
    "static_runtime": """
        VarTupleUnpack clamp_nan_to_num create_owned_ref dequantize_copy dict_unpack embedding_bag expand_dims_copy
        flatten_copy fused_equally_split layer_norm permute_copy reshape_copy select_tensor signed_log1p to_copy
        to_maybe_copy_out
    """,
    "streams": """
        fork join record_event record_stream sync_dealloc synchronize_device synchronize_event synchronize_stream
        wait_event wait_stream
    """,
    "symm_mem": """
        _barrier _low_contention_all_gather _low_contention_all_gather_ce_multicast
        _low_contention_all_gather_ce_multicast_out _low_contention_reduce_scatter _rendezvous all_to_all_vdev
        all_to_all_vdev_2d all_to_all_vdev_2d_offset get_remote_tensors memcpy_to_multicast memset32
        multi_root_tile_reduce multimem_all_gather_out multimem_all_reduce multimem_one_shot_all_reduce
        multimem_one_shot_all_reduce_out multimem_one_shot_reduce_out nccl_all_to_all_nd nccl_get nccl_get_out nccl_put
        nccl_put_signal nccl_put_with_signal nccl_reduce_scatter_offset nccl_wait_for_signal nccl_wait_signal
        nvshmem_all_to_all nvshmem_broadcast nvshmem_get nvshmem_get_out nvshmem_put nvshmem_put_with_signal
        nvshmem_wait_for_signal one_shot_all_reduce one_shot_all_reduce_copy one_shot_all_reduce_copy_out
        one_shot_all_reduce_out reduce_scatter_out stream_write_value32 tile_reduce two_shot_all_reduce
        two_shot_all_reduce_out
    """,
}
