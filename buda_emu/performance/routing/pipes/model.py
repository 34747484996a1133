"""The pipe graph of one temporal epoch: buffers in L1 and DRAM, and pipes that move tiles between them.

It holds all that the vendor's net2pipe writes to `pipegen.yaml`. Fields have the names of that file's keys, except for
a few that a comment names. Sizes are in tiles if the name says so, else in bytes.

Refusals of netlists that cannot be turned into pipes.
"""

from buda_emu.support.records import dataclass

NO_CORE = 255
"""Row and column of a buffer that lies in DRAM, on no core."""

NO_PADDING = 0
"""In `Pipe.output_padding`: the outputs at this scatter index are fed by the pipe's inputs."""

PRE_TM = 0
POST_TM = 1
"""`Buffer.prefetch_type`: an operand kept in L1 as it lies in DRAM, or as the consumer reads it, after its TMs."""


@dataclass(slots=True, kw_only=True)  # frozen, the making of these alone would take a tenth of the time of pipes
class Buffer:
    """A buffer: an operand of a core (unpacker, packer, intermediate), a relay, or a queue's buffer in DRAM."""

    id: int  # `uniqid`
    operand: int = -1  # `id`: 0..7 inputs, 8..15 parameters, 16..23 outputs, 24..31 intermediates, 32..39 relays
    op: str = ""  # `md_op_name`: op or queue
    buffer_type: str = "unknown"
    chip: int = 0  # `chip_id`
    row: int = NO_CORE  # `core_coordinates`: counted over worker cores alone
    column: int = NO_CORE
    epoch_tiles: int = 0
    tiles_per_input: int = 0
    size_tiles: int = 0
    tile_size: int = 0
    scatter_gather_num_tiles: int = 0
    is_scatter: bool = False
    replicate: int = 0
    tile_clear_granularity: int = 0
    overlay_blob_size: int = 0
    buffer_space_shared: int = -1
    producer_epoch_id: int = -1
    ethernet_chan: int = -1
    is_padding: bool = False
    is_post_tm_relay_buf: bool = False
    use_ethernet_fw_stream: bool = False
    dram_chan: int = 0
    dram_sub_chan: int = 0
    dram_addr: int = 0
    q_slots: int = 0
    dram_io_flag: bool = False
    dram_io_flag_is_remote: bool = False
    dram_io_allow_overwrite: bool = False
    dram_io_skip_flow_ctrl: bool = False
    dram_buf_flag: bool = False
    dram_buf_streaming: bool = False
    write_dram_buf_flag: bool = False
    dram_ram_flag: bool = False
    dram_prefetch_incoming_noc_id: int = 0
    prefetch_type: int = PRE_TM
    use_shadow_rd_ptr: bool = False
    ublock_rt: int = 0
    ublock_ct: int = 0
    mblock_m: int = 0
    mblock_n: int = 0
    mblock_k: int = 0
    untilized_output: bool = False
    untilized_output_full_r_dim: int = 0
    untilized_output_full_c_dim: int = 0
    untilized_output_r_dim: int = 0
    untilized_output_c_dim: int = 0
    untilized_output_z_dim: int = 0
    untilized_output_type_0_zdim: int = 0
    untilized_output_type_1_zdim: int = 0
    untilized_output_tile_dim_r: int = 0
    untilized_output_tile_dim_c: int = 0
    embedding_table: bool = False
    embedding_table_core_c_div: int = 0
    embedding_table_row_size: int = 0
    embedding_table_row_size_per_core: int = 0
    embedding_index: bool = False
    embedding_indices_per_tile: int = 0
    embedding_indices_per_input: int = 0
    embedding_op_data_input: bool = False
    embedding_op_index_input: bool = False
    hw_tilize: bool = False
    tilize_mblock_n_loop_num_rows: int = 32
    tilize_row_col_offset: int = 0


@dataclass(slots=True, kw_only=True)
class Pipe:
    """A pipe: its inputs in the order in which their tiles are read, and its receivers."""

    id: int
    inputs: tuple[int, ...]
    """`input_list`: a buffer's id plus the first tile that is read of it; each stands for one piece of it of
    `scatter_gather_num_tiles` tiles."""
    outputs: tuple[tuple[int, ...], ...]
    """`output_list`: for each scatter index, which are served in turn, the buffers that get the same tiles."""
    output_padding: tuple[int, ...] = ()
    """`output_padding_list`: for each scatter index the padding buffer that stands for the inputs, or `NO_PADDING`."""
    mcast_core_rc: tuple[tuple[int, int, int], ...] = ()
    """Chip, row and column of the cores that gather or multicast, one or one for each scatter index."""
    pipe_periodic_repeat: int = 0
    pipe_consumer_repeat: int = 1
    incoming_noc_id: int = 0
    incoming_vc: int = 0
    outgoing_noc_id: int = 0
    outgoing_vc: int = 0
    ethernet_chan: int = -1
    ethernet_pipe: bool = False
    mmio_pipe: bool = False
    mmio_pipe_downstream: bool = False
    dis_gather_opt: bool = False
    direct_mcast: bool = False
    op_input_dram_io_buf_size_tiles: int = 0
    dram_pipe_total_readers: tuple[int, ...] = ()
    dram_pipe_reader_index: tuple[int, ...] = ()
    dram_pipe_num_forks: int = 0
    dram_pipe_fork_index: int = 0


@dataclass(frozen=True, slots=True)
class PipeGraph:
    """Buffers and pipes of one temporal epoch, in the order of the file."""

    name: str
    buffers: tuple[Buffer, ...]
    pipes: tuple[Pipe, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The refusal of a netlist by the vendor's net2pipe. `rule` is an id of the netlist catalogue.

    `op` is the op or queue that is at fault; `input` its operand, -1 if none is meant; `core` the row and column of a
    worker core that has too little of a resource: `used` of `limit`.
    """

    rule: str
    what: str
    hint: str = ""
    op: str = ""
    input: int = -1
    core: tuple[int, int] | None = None
    used: int = -1
    limit: int = -1


class RefusedError(Exception):
    """The refusal of an edge or op by net2pipe. Internal to `routing`: callers get `Refusal`s."""

    def __init__(self, rule: str, what: str, hint: str = "", op: str = "") -> None:
        super().__init__(what)
        self.rule = rule
        self.what = what
        self.hint = hint
        self.op = op
        self.input = -1

    def refusal(self, op: str = "") -> Refusal:
        """Return the refusal as data; `op` is the op or queue at fault, if the error does not name one."""
        return Refusal(rule=self.rule, what=self.what, hint=self.hint, op=self.op or op, input=self.input)
