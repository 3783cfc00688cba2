"""The words of the synthetic corpus: everyday words, rare words composed from parts, and middling words."""

from itertools import product


def _words(text: str) -> list[str]:
    return text.split()


GLUE = _words("""
the a of to and in is it that for on with as we this be are was not from by at or if so but then when which there
have has can will should would do does did all any only also still now just here after before while because than
into over under between about one two more no yes you i they our its
""")
# Ordinary words of people who build and run software, and of others: the first ones are used most.
COMMON = _words("""
build test deploy server file change error check config data service request time database run branch update cluster
version release user value call table query token cache queue worker index setting report limit page module package
pipeline commit review merge script command output input result method class function object field record column
schema migration backup restore restart monitor alert metric trace span dashboard traffic latency timeout retry
failure success warning message session account customer invoice payment order product price discount contract
vendor shipment warehouse stock catalog search filter sort export import download upload image video document folder
archive network socket port address host domain certificate secret password login permission role policy audit rule
firewall gateway proxy router balancer region zone node container volume disk memory thread process kernel driver
device battery sensor camera printer keyboard screen window button menu form label theme color font layout grid
margin border header footer sidebar banner icon avatar profile comment channel group invite member team owner
manager engineer designer analyst student teacher doctor patient clinic garden kitchen recipe flour butter bicycle
train ticket airport hotel luggage museum painting concert guitar piano chorus novel chapter author library shelf
lamp carpet ceiling plumber budget salary tax insurance mortgage rent landlord meeting agenda minutes deadline
milestone roadmap sprint backlog estimate priority severity incident outage postmortem runbook checklist handover
rotation calendar reminder weekend morning evening summer winter autumn weather storm river mountain forest island
harbour bridge tunnel station platform engine wheel brake mirror tyre fuel charger cable adapter antenna signal
frequency spectrum packet buffer stream frame codec bitrate subtitle caption playlist podcast episode season
audience survey answer question quiz lesson course exam grade diploma thesis proof theorem matrix vector tensor
gradient training dataset sample model prompt context summary embedding ranking score threshold baseline benchmark
compiler parser lexer syntax grammar macro template generator iterator closure decorator registry plugin extension
hook callback event listener scheduler timer clock counter gauge histogram percentile average median maximum minimum
boundary range offset length width height depth weight balance ledger journal entry snapshot replica shard partition
lease lock mutex semaphore barrier interrupt exception traceback debugger breakpoint variable constant literal
string integer decimal boolean pointer reference allocation garbage collector heap stack arena pool connection
cursor transaction rollback savepoint isolation conflict duplicate orphan parent child sibling ancestor lineage root
leaf tree graph edge vertex path route detour shortcut alias symlink mount bucket prefix suffix wildcard pattern
match replace insert delete append truncate compress encrypt decrypt sign verify hash digest checksum payload
envelope
""")

_PREFIXES = _words("""
re un pre over under inter multi micro macro hyper trans sub super anti auto bio geo photo electro thermo hydro
cyber crypto proto pseudo semi tele ultra meta para
""")
_STEMS = _words("""
calibr modul segment fragment orchestr aggreg normal vector seri local virtual provision instrument annot valid
configur synthes optim parallel quant regular token sanit transl render compil interpol extrapol integr oscill vibr
ferment crystall polar magnet ion hydr oxid carbon nitr sulf ceram metall polym membran capill vascul neur muscul
skelet derm card hepat ren pulmon gastr ophthalm orthod pedi geri psych soci anthrop archae lingu phon morph lexic
semant pragm rhetor logist tact strateg fisc monet tarif custom quot franch subsid merch retail whol freight nautic
aeron astron cosm stell lunar tid volcan seism glaci sediment
""")
_SUFFIXES = _words("""
ation ations ator ators ating ated ality alist ally able ability ism istic ology ometer ometry ograph ography oid
osis ative izing izer ized
""")

# Made up yet readable, more than fifty thousand: each is rare, together they are the long tail of any vocabulary.
RARE = [f"{before}{stem}{end}" for end, before, stem in product(_SUFFIXES, _PREFIXES, _STEMS)]

TOOLS = ["terminal", "read_file", "write_file", "search_files", "web_search", "run_tests", "patch", "browser_open"]
EXTENSIONS = ["py", "ts", "go", "rs", "md", "yaml", "toml", "sql", "sh", "json"]
LEVELS = ["INFO", "INFO", "INFO", "DEBUG", "WARNING", "ERROR"]

LATIN = _words("""
Docker Redis Python Kubernetes PostgreSQL nginx Git Linux API JSON HTTP Kafka Grafana Prometheus Terraform Ansible
webhook token pull request commit SDK CPU GPU SSD VPN DNS CSV PDF Excel
""")
CHINESE_GLUE = _words("""
的 了 在 是 我 我们 你 他们 这个 那个 和 也 就 都 要 会 可以 需要 应该 如果 因为 所以 但是 已经 还 不 没有 把 被 从
到 给 对 以后 之前 现在 然后 一个 一下 什么 怎么
""")
CHINESE = _words("""
数据 服务 系统 部署 测试 配置 问题 文件 代码 用户 更新 版本 接口 日志 错误 项目 运行 修改 检查 时间 任务 连接 请求
环境 缓存 备份 迁移 性能 监控 报警 权限 账号 密码 登录 网络 端口 域名 证书 模块 函数 变量 参数 返回 结果 输出 输入
页面 按钮 表格 图片 视频 下载 上传 搜索 过滤 排序 索引 查询 事务 回滚 分支 合并 提交 评审 发布 上线 回退 重启 超时
重试 失败 成功 警告 消息 会话 队列 线程 进程 内存 磁盘 容器 集群 节点 镜像 脚本 命令 终端 工具 插件 框架 依赖 编译
打包 安装 升级 文档 说明 示例 需求 设计 方案 计划 进度 会议 讨论 客户 合同 订单 支付 发票 价格 折扣 库存 仓库 物流
快递 退款 财务 预算 报表 统计 分析 模型 训练 样本 特征 向量 评分 阈值 实验 结论 学生 老师 课程 考试 成绩 论文 医院
医生 病人 药品 挂号 花园 厨房 菜谱 面粉 黄油 自行 火车 车票 机场 酒店 行李 博物 油画 音乐 吉他 钢琴 小说 章节 作者
图书 台灯 地毯 窗户 天气 暴雨 河流 高山 森林 海岛 港口 大桥 隧道 车站
""")

# In no text of the corpus by themselves: `growth.py` puts each into 0.3 to 2 % of the messages.
MIDDLING = _words("""
acorn almond anchor antler apricot arrow attic badger bakery balloon bamboo barley basalt basket beacon beaver
beetle blanket blossom bonfire bottle bracelet breeze brick bronze bucket buckle butterfly cabin cactus candle canoe
canyon caravan carrot castle cedar cellar chalk chapel cherry chestnut chimney cinnamon citadel clover cobweb
coconut compass copper coral cottage cotton cradle crayon cricket crystal cupboard curtain cushion daisy dolphin
donkey dragon drawer eagle eggplant elbow ember emerald falcon feather fiddle flannel flute forge fossil fountain
fox gable garlic geyser ginger glacier goblet goose granite grape gravel hammer hammock harp harvest hazel hedge
helmet heron honey horizon hornet icicle iguana ivory ivy jacket jasmine jigsaw juniper kayak kettle kiln kimono
kitten ladder lagoon lantern lavender lemon lettuce lighthouse lilac linen lobster locket lotus lynx magnet mango
maple marble meadow melon mint mitten moss mushroom mustard nectar needle nest nutmeg oasis oat olive onion orchard
orchid otter owl oyster paddle panther papaya parasol parchment parrot peach peacock pebble pelican penguin pepper
petal pigeon pillow pine pistachio plum pocket pony poppy porcelain pottery prairie puddle pumpkin quarry quartz
quill quilt rabbit raccoon radish raft raisin raven ribbon robin rooster rope rosemary saddle saffron salmon sandal
sapphire satin scarf seashell shovel silk sparrow spinach spoon squirrel stallion statue sugar sunflower swan
tambourine tangerine teapot thimble thistle thunder tiger tomato topaz tortoise trumpet tulip turnip turquoise
umbrella vanilla velvet vinegar violin walnut walrus wardrobe waterfall whistle willow windmill wolf wool yogurt
zebra zinnia
""")
